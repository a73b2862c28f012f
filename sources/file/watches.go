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

// Names in a watchedName that stand for several.
const (
	// listingNames stands for the names that the listing of the folder has.
	listingNames = ""
	// anyName stands for every name.
	anyName = "*/" // no file is named so
)

// watchedName is where a change matters to a page: a name in a folder.
type watchedName struct{ folder, name string }

// watchedNames returns where changes of the file or folder at path show: folders are watched and not
// files, since many programs write a new file and rename it. Of a symbolic link everything in its
// folder matters, since a link on the way can change, and so does the file that it leads to.
func watchedNames(path string) []watchedName {
	places := []watchedName{{filepath.Dir(path), filepath.Base(path)}}
	target, err := filepath.EvalSymlinks(path)
	if err == nil && target != path {
		places = append(places, watchedName{filepath.Dir(path), anyName}, watchedName{filepath.Dir(target), filepath.Base(target)})
	}
	return places
}

// watches are the folders that the system watches, and the pages for which it does.
type watches struct {
	log *slog.Logger

	mu          sync.Mutex
	namesByPage map[string][]watchedName        // by page
	pagesByName map[watchedName]map[string]bool // whom a change concerns
	folderUses  map[string]int                  // how many watched names are in it
	system      *fsnotify.Watcher               // nil unless run is active
	warned      sync.Once
}

func newWatches(log *slog.Logger) *watches {
	return &watches{log: log, namesByPage: make(map[string][]watchedName), pagesByName: make(map[watchedName]map[string]bool), folderUses: make(map[string]int)}
}

// set makes places the watched names of page, in place of earlier ones. Without any the page is
// forgotten.
func (w *watches) set(page string, places []watchedName) {
	system, ended := w.setWithoutSystem(page, places)
	if system == nil {
		return
	}
	// Without w.mu: on some systems a watcher waits here until its last notification was taken.
	for _, folder := range ended {
		_ = system.Remove(folder) // it may be gone
	}
	for _, p := range places {
		w.watchFolder(system, p.folder)
	}
}

// setWithoutSystem does what set does, but for the system. It returns the active watcher, or nil, and
// the folders that need not be watched any more.
func (w *watches) setWithoutSystem(page string, places []watchedName) (system *fsnotify.Watcher, ended []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.namesByPage[page]
	for _, p := range places {
		if w.pagesByName[p] == nil {
			w.pagesByName[p] = make(map[string]bool)
		}
		w.pagesByName[p][page] = true
		w.folderUses[p.folder]++
	}
	for _, p := range old {
		if !slices.Contains(places, p) {
			if delete(w.pagesByName[p], page); len(w.pagesByName[p]) == 0 {
				delete(w.pagesByName, p)
			}
		}
		if w.folderUses[p.folder]--; w.folderUses[p.folder] == 0 {
			delete(w.folderUses, p.folder)
			ended = append(ended, p.folder)
		}
	}
	if w.namesByPage[page] = places; len(places) == 0 {
		delete(w.namesByPage, page)
	}
	return w.system, ended
}

// watchFolder has the system watch folder, again if it does: the folder may be another one by now. A
// folder that does not exist is tried again with the next check of the page.
func (w *watches) watchFolder(system *fsnotify.Watcher, folder string) {
	err := system.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fsnotify.ErrClosed) {
		return
	}
	w.warnOnce(folder, err)
}

// warnOnce says once that some changes are found by the interval only.
func (w *watches) warnOnce(folder string, err error) {
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
		w.warnOnce("", err)
		return nil
	}
	defer system.Close()
	for _, folder := range w.activate(system) {
		w.watchFolder(system, folder)
	}
	defer w.activate(nil)
	waiting := make(bursts)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-system.Events:
			if e.Op != fsnotify.Chmod {
				waiting.add(w.pagesConcerned(e), time.Now())
			}
		case err := <-system.Errors:
			if errors.Is(err, fsnotify.ErrEventOverflow) { // notifications were lost: any page may have changed
				waiting.add(w.allPages(), time.Now())
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
		if next, ok := waiting.nextReport(); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// activate makes system the active watcher, nil for none, and returns the folders to watch.
func (w *watches) activate(system *fsnotify.Watcher) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.system = system
	return slices.Collect(maps.Keys(w.folderUses))
}

// pagesConcerned returns the pages that e concerns.
func (w *watches) pagesConcerned(e fsnotify.Event) []string {
	folder, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	names := []string{name, anyName}
	if e.Op != fsnotify.Write && !isLeftOut(name) { // a write changes no listing
		names = append(names, listingNames)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var pages []string
	for _, n := range names {
		pages = append(pages, slices.Collect(maps.Keys(w.pagesByName[watchedName{folder, n}]))...)
	}
	return pages
}

// allPages returns all pages.
func (w *watches) allPages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.namesByPage))
}

// Waits for the end of a burst of changes.
const (
	// burstQuietTime is how long nothing must change for a burst to be over.
	burstQuietTime = 100 * time.Millisecond
	// maxBurstTime is after how long changes are reported though they go on.
	maxBurstTime = time.Second
)

// burst is when the first and the last of some changes came.
type burst struct{ first, last time.Time }

// reportTime returns when the burst is reported: when it is over, or has lasted for maxBurstTime.
func (b burst) reportTime() time.Time {
	if end := b.first.Add(maxBurstTime); end.Before(b.last.Add(burstQuietTime)) {
		return end
	}
	return b.last.Add(burstQuietTime)
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

// nextReport returns when the next burst is reported, if there is any.
func (bs bursts) nextReport() (at time.Time, ok bool) {
	for _, b := range bs {
		if over := b.reportTime(); !ok || over.Before(at) {
			at, ok = over, true
		}
	}
	return at, ok
}

// due returns the pages whose bursts are to be reported at now, and forgets them.
func (bs bursts) due(now time.Time) []string {
	var pages []string
	for page, b := range bs {
		if !b.reportTime().After(now) {
			pages = append(pages, page)
			delete(bs, page)
		}
	}
	slices.Sort(pages)
	return pages
}
