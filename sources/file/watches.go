package filesource

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Names in a place that stand for several.
const (
	// listed stands for the names that the listing of the folder has.
	listed = ""
	// all stands for every name.
	all = "*/" // no file is named so
)

// place is where a change matters to a page: a name in a folder.
type place struct{ folder, name string }

// filePlaces returns where changes of the file or folder at path show: folders are watched and not
// files, since many programs write a new file and rename it. Of a symbolic link everything in its
// folder matters, since a link on the way can change, and so does the file that it leads to.
func filePlaces(path string) []place {
	places := []place{{filepath.Dir(path), filepath.Base(path)}}
	target, err := filepath.EvalSymlinks(path)
	if err == nil && target != path {
		places = append(places, place{filepath.Dir(path), all}, place{filepath.Dir(target), filepath.Base(target)})
	}
	return places
}

// watches are the folders that the system watches, and the pages for which it does.
type watches struct {
	log *slog.Logger

	mu      sync.Mutex
	places  map[string][]place        // by page
	pages   map[place]map[string]bool // whom a change concerns
	folders map[string]int            // how many places are in it
	system  *fsnotify.Watcher         // nil unless run is active
	warned  sync.Once
}

func newWatches(log *slog.Logger) *watches {
	return &watches{log: log, places: make(map[string][]place), pages: make(map[place]map[string]bool), folders: make(map[string]int)}
}

// set makes places those of page, in place of earlier ones; without any the page is forgotten.
func (w *watches) set(page string, places []place) {
	system, ended := w.note(page, places)
	if system == nil {
		return
	}
	// Without w.mu: on some systems a watcher waits here until its last notification was taken.
	for _, folder := range ended {
		_ = system.Remove(folder) // it may be gone
	}
	for _, p := range places {
		w.add(system, p.folder)
	}
}

// note is set without the system. It returns the active watcher, or nil, and the folders that need
// not be watched any more.
func (w *watches) note(page string, places []place) (system *fsnotify.Watcher, ended []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.places[page]
	for _, p := range places {
		if w.pages[p] == nil {
			w.pages[p] = make(map[string]bool)
		}
		w.pages[p][page] = true
		w.folders[p.folder]++
	}
	for _, p := range old {
		if !slices.Contains(places, p) {
			if delete(w.pages[p], page); len(w.pages[p]) == 0 {
				delete(w.pages, p)
			}
		}
		if w.folders[p.folder]--; w.folders[p.folder] == 0 {
			delete(w.folders, p.folder)
			ended = append(ended, p.folder)
		}
	}
	if w.places[page] = places; len(places) == 0 {
		delete(w.places, page)
	}
	return w.system, ended
}

// add has the system watch folder, again if it does: the folder may be another one by now. A
// folder that does not exist is tried again with the next check of the page.
func (w *watches) add(system *fsnotify.Watcher, folder string) {
	err := system.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fsnotify.ErrClosed) {
		return
	}
	w.warn(folder, err)
}

// warn says once that some changes are found by the interval only.
func (w *watches) warn(folder string, err error) {
	w.warned.Do(func() {
		advice := ""
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
			advice = "; the limit of watches is reached: on Linux raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
		}
		w.log.Warn("the system does not report changes of some files, which are checked by their interval only"+advice, "folder", folder, "err", err)
	})
}

// run reports changes until ctx is done.
func (w *watches) run(ctx context.Context, changed func(ctx context.Context, page string) bool) error {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		w.warn("", err)
		return nil
	}
	defer system.Close()
	for _, folder := range w.start(system) {
		w.add(system, folder)
	}
	defer w.start(nil)
	waiting := make(bursts)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-system.Events:
			if e.Op != fsnotify.Chmod {
				waiting.add(w.concerned(e), time.Now())
			}
		case err := <-system.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) { // notifications were lost: any page may have changed
				waiting.add(w.every(), time.Now())
			} else {
				w.log.Warn("notifications of changed files may be missing; files are checked by their interval all the same", "err", err)
			}
		case <-timer.C:
			for _, page := range waiting.due(time.Now()) {
				if !changed(ctx, page) {
					go w.set(page, nil) // must not wait for the next notification, which is taken here
				}
			}
		}
		if next, ok := waiting.next(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// start makes system the active watcher, nil for none, and returns the folders to watch.
func (w *watches) start(system *fsnotify.Watcher) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.system = system
	return slices.Collect(maps.Keys(w.folders))
}

// concerned returns the pages that e concerns.
func (w *watches) concerned(e fsnotify.Event) []string {
	folder, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	names := []string{name, all}
	if e.Op != fsnotify.Write && !passedOver(name) { // a write changes no listing
		names = append(names, listed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var pages []string
	for _, n := range names {
		pages = append(pages, slices.Collect(maps.Keys(w.pages[place{folder, n}]))...)
	}
	return pages
}

// every returns all pages.
func (w *watches) every() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.places))
}

// Waits for the end of a burst of changes.
const (
	// quiet is how long nothing must change for a burst to be over.
	quiet = 100 * time.Millisecond
	// longest is after how long changes are reported though they go on.
	longest = time.Second
)

// burst is when the first and the last of some changes came.
type burst struct{ first, last time.Time }

func (b burst) over() time.Time {
	if end := b.first.Add(longest); end.Before(b.last.Add(quiet)) {
		return end
	}
	return b.last.Add(quiet)
}

// bursts are those of pages.
type bursts map[string]burst

func (bs bursts) add(pages []string, now time.Time) {
	for _, page := range pages {
		b, ok := bs[page]
		if !ok {
			b.first = now
		}
		b.last = now
		bs[page] = b
	}
}

// next returns when the first burst is over, if there is any.
func (bs bursts) next() (at time.Time, ok bool) {
	for _, b := range bs {
		if over := b.over(); !ok || over.Before(at) {
			at, ok = over, true
		}
	}
	return at, ok
}

// due returns the pages whose bursts are over at now, and forgets them.
func (bs bursts) due(now time.Time) []string {
	var pages []string
	for page, b := range bs {
		if !b.over().After(now) {
			pages = append(pages, page)
			delete(bs, page)
		}
	}
	slices.Sort(pages)
	return pages
}
