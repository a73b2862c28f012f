package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/sources/browser"
)

// configCheckInterval is the interval at which a running pipeline checks its configuration for changes.
const configCheckInterval = 2 * time.Second

// reloader reads the configuration again on SIGHUP, and when its file or a file that it names
// has changed.
type reloader struct {
	path string
	// files are the files that the configuration named at the last load.
	files *fileSet
	load  func() (*config.Config, error)
	apply func(context.Context, vokter.Config) ([]string, error)
	// retry attempts the pending notifications of a changed sink.
	retry func(ctx context.Context, sink string) error
	// hangups is nil where the process ignores them.
	hangups <-chan os.Signal
	// ticks has a value when the file is to be checked for changes.
	ticks <-chan time.Time
	// requests are to be carried out between two reloads.
	requests <-chan func(context.Context)
	log      *slog.Logger
	// started is the configuration of the start, and now the current one, both without Router.
	started, now *config.Config
	// at has the settings of the listener.
	at listenSettings
	// applied is the content that was last applied or refused, seen the content that was last
	// read.
	applied, seen contentDigest
	// loggedFailure is a valid configuration that could not be applied and whose failure is logged
	// already. The reason may differ from one attempt to the next.
	loggedFailure contentDigest
}

// contentDigest is the digest of the configuration and the files that it names, or the error of
// reading it.
type contentDigest struct {
	sum [sha256.Size]byte
	err string
}

// fileSet is the set of files that a configuration names.
type fileSet struct{ paths map[string]bool }

func (f *fileSet) reset() { f.paths = make(map[string]bool) }

func (f *fileSet) add(path string) { f.paths[path] = true }

// digestContent returns the digest of path, unless that is empty, and of the files that it names. It reads no pipes,
// because what is read from a pipe is gone the next time.
func digestContent(path string, named *fileSet) contentDigest {
	sum := sha256.New()
	if path != "" {
		main, err := digestFile(path)
		if err != nil {
			return contentDigest{err: err.Error()}
		}
		fmt.Fprintf(sum, "%s %x\n", path, main)
	}
	for _, path := range slices.Sorted(maps.Keys(named.paths)) {
		one, err := digestFile(path)
		fmt.Fprintf(sum, "%s %x %v\n", path, one, err)
	}
	return contentDigest{sum: [sha256.Size]byte(sum.Sum(nil))}
}

// digestFile returns the digest of a regular file.
func digestFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New(path + " is not a regular file, so it cannot be read again")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return sum.Sum(nil), err
}

// run reloads until ctx is done.
func (r *reloader) run(ctx context.Context) {
	if r.hangups == nil {
		r.log.Info("SIGHUP is ignored, as nohup demands; changed files are noticed without it", "file", r.path)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			r.seen = digestContent(r.path, r.files)
			_ = r.reload(ctx) // it logs why not
		case do := <-r.requests:
			do(ctx)
		case <-r.ticks:
			now := digestContent(r.path, r.files)
			// A file that is being written may be incomplete. It counts only if two checks find
			// the same content.
			settled := now == r.seen
			r.seen = now
			if settled && now != r.applied {
				_ = r.reload(ctx) // it logs why not
			}
		}
	}
}

// reload applies the configuration file, or logs and returns why it cannot.
func (r *reloader) reload(ctx context.Context) error {
	last := r.applied
	if r.applied = r.seen; r.applied.err != "" {
		r.log.Error("the configuration file cannot be read; the current configuration stays in force", "err", r.applied.err)
		return errors.New(r.applied.err)
	}
	named := maps.Clone(r.files.paths)
	c, err := r.load()
	if !maps.Equal(named, r.files.paths) { // the configuration names other files now
		r.applied = digestContent(r.path, r.files)
		r.seen = r.applied
	}
	if err != nil {
		r.log.Error("the configuration file was changed and is not valid; the current configuration stays in force", "file", r.path)
		mistakes, ok := errors.AsType[config.Errors](err)
		if !ok {
			r.log.Error(err.Error())
		}
		for _, m := range mistakes {
			r.log.Error(m.Error())
		}
		return err
	}
	pagesBefore := r.started.Browser.Config().Pages
	r.started.Browser.SetPages(c.Browser.Config().Pages) // before a page is checked for the first time
	lines, err := r.apply(ctx, c.Router)
	if err != nil {
		r.started.Browser.SetPages(pagesBefore)
		r.applied = last // so that the next tick tries again
		if r.loggedFailure != r.seen {
			r.log.Error("the changed configuration cannot be applied yet; trying again", "file", r.path, "err", err)
		}
		r.loggedFailure = r.seen
		return err
	}
	r.loggedFailure = contentDigest{}
	if r.at.slack != nil {
		r.at.slack.Configure(c.Router.Sinks)
	}
	logWarnings(r.log, c)
	before, after := r.now, c
	if !reflect.DeepEqual(after.API, before.API) {
		if err := r.at.access.Configure(after.API); err != nil {
			r.log.Error("api cannot be changed", "err", err)
			after.API = before.API
		} else {
			lines = append(lines, "api changed")
		}
	}
	if !reflect.DeepEqual(after.Web, before.Web) {
		r.at.web.Configure(after.Web)
		lines = append(lines, "web changed")
	}
	for _, part := range []struct {
		name            string
		started, wanted any
	}{
		{"listen", r.started.Listen, after.Listen}, {"rest", r.started.Rest, after.Rest}, {"transport", r.started.Transport, after.Transport},
	} {
		if !reflect.DeepEqual(part.started, part.wanted) {
			lines = append(lines, part.name+" changed: this takes effect with the next start")
		}
	}
	lines = append(lines, browserChanges(r.started.Browser, pagesBefore, after.Browser)...)
	changed := changedSinks(before.Options, after.Options)
	for _, name := range changed {
		lines = append(lines, "sink changed: "+name)
	}
	lines = append(lines, readerChanges(before.Readers, after.Readers)...)
	after.Router = vokter.Config{} // it may be large
	r.now = after
	if len(lines) == 0 {
		r.log.Info("the configuration was read again; nothing has changed", "file", r.path)
		return nil
	}
	r.log.Info("the changed configuration is applied", "file", r.path, "differences", len(lines))
	for _, l := range lines {
		r.log.Info(l)
	}
	for _, name := range changed {
		if err := r.retry(ctx, name); err != nil {
			r.log.Warn("the pending notifications of a changed sink are attempted when they are due, not at once", "sink", name, "err", err)
		}
	}
	return nil
}

// browserChanges returns a line for each page that is fetched in another way than before, and one if the browser of now
// is not started as that of the start is. The line for fetch tells of what both get from there.
func browserChanges(started *browser.Fetcher, before map[string]browser.Page, now *browser.Fetcher) []string {
	var lines []string
	pages := now.Config().Pages
	all := maps.Clone(before)
	maps.Copy(all, pages)
	for _, page := range slices.Sorted(maps.Keys(all)) {
		was, found := before[page]
		if is, ok := pages[page]; found != ok || !reflect.DeepEqual(was, is) {
			lines = append(lines, "fetch changed: "+page)
		}
	}
	own := func(f *browser.Fetcher) browser.Config {
		c := f.Config()
		c.Pages, c.Allow, c.UserAgent = nil, nil, ""
		return c
	}
	if !reflect.DeepEqual(own(started), own(now)) {
		lines = append(lines, "browser changed: this takes effect with the next start")
	}
	return lines
}

// readerChanges returns a line for each reader that was added or removed, or has other options or
// another file.
func readerChanges(before, now map[string][sha256.Size]byte) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch old, ok := before[name]; {
		case !ok:
			lines = append(lines, "reader added: "+name)
		case old != now[name]:
			lines = append(lines, "reader changed: "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := now[name]; !ok {
			lines = append(lines, "reader removed: "+name)
		}
	}
	return lines
}

// changedSinks returns the names of the sinks in both whose options differ.
func changedSinks(before, now map[string][sha256.Size]byte) []string {
	var names []string
	for name, sum := range now {
		if old, ok := before[name]; ok && old != sum {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
