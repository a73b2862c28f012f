package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline/registry"
)

// lookEvery is the time between two looks at the configuration of a running pipeline.
const lookEvery = 2 * time.Second

// reloader reads a configuration again on SIGHUP, and where the file has changed, or one that it
// names.
type reloader struct {
	path string
	// files are those that it names, as far as the last load told.
	files *fileSet
	load  func() (*config.Config, error)
	apply func(context.Context, vokter.Config) ([]string, error)
	// retry attempts the pending notifications of a sink that was changed.
	retry func(ctx context.Context, sink string) error
	// hangups is nil where the process ignores them.
	hangups <-chan os.Signal
	// look comes when the file is to be looked at.
	look      <-chan time.Time
	log       *slog.Logger
	listen    string
	transport registry.Transport
	// options are the digests of the options of the sinks in force.
	options map[string][sha256.Size]byte
	// used is the content that was taken over or refused last, seen the one that was looked
	// at last.
	used, seen content
	// failed is a valid configuration that was not taken over yet, as it was logged. Why may
	// differ from one look to the next.
	failed content
}

// content stands for what a file holds, or says why it cannot be read.
type content struct {
	sum [sha256.Size]byte
	err string
}

// fileSet are the files that a configuration names.
type fileSet struct{ paths map[string]bool }

func (f *fileSet) reset() { f.paths = make(map[string]bool) }

func (f *fileSet) add(path string) { f.paths[path] = true }

// contentOf returns what path and the files that it names hold. It reads no pipe: that would take
// from it, and find nothing the next time.
func contentOf(path string, named *fileSet) content {
	b, err := plainFile(path)
	if err != nil {
		return content{err: err.Error()}
	}
	sum := sha256.New()
	add := func(path string, b []byte, err error) {
		one := sha256.Sum256(b)
		fmt.Fprintf(sum, "%s %x %v\n", path, one, err)
	}
	add(path, b, nil)
	for _, path := range slices.Sorted(maps.Keys(named.paths)) {
		b, err := plainFile(path)
		add(path, b, err)
	}
	return content{sum: [sha256.Size]byte(sum.Sum(nil))}
}

func plainFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New(path + " is no plain file, so that it cannot be read again")
	}
	return os.ReadFile(path)
}

// run reloads until ctx is done.
func (r *reloader) run(ctx context.Context) {
	if r.hangups == nil {
		r.log.Info("SIGHUP is ignored, as nohup has it; changed files are noticed without it", "file", r.path)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			r.seen = contentOf(r.path, r.files)
			r.reload(ctx)
		case <-r.look:
			now := contentOf(r.path, r.files)
			// A file that is being written is not taken for the whole of it: it has to look
			// the same twice.
			settled := now == r.seen
			r.seen = now
			if settled && now != r.used {
				r.reload(ctx)
			}
		}
	}
}

// reload makes the pipeline do what the file says, or logs why it does not.
func (r *reloader) reload(ctx context.Context) {
	before := r.used
	if r.used = r.seen; r.used.err != "" {
		r.log.Error("the configuration cannot be read again; what runs goes on as it is", "err", r.used.err)
		return
	}
	named := maps.Clone(r.files.paths)
	c, err := r.load()
	if !maps.Equal(named, r.files.paths) { // it names other files now
		r.used = contentOf(r.path, r.files)
		r.seen = r.used
	}
	if err != nil {
		r.log.Error("the configuration was changed and is not valid; what runs goes on as it is", "file", r.path)
		mistakes, ok := errors.AsType[config.Errors](err)
		if !ok {
			r.log.Error(err.Error())
		}
		for _, m := range mistakes {
			r.log.Error(m.Error())
		}
		return
	}
	lines, err := r.apply(ctx, c.Router)
	if err != nil {
		r.used = before // the next look tries again
		if r.failed != r.seen {
			r.log.Error("the configuration was changed and cannot be taken over yet; it is tried again", "file", r.path, "err", err)
		}
		r.failed = r.seen
		return
	}
	r.failed = content{}
	logWarnings(r.log, c)
	if c.Listen != r.listen {
		lines = append(lines, "listen changed: this takes effect with the next start")
	}
	if !reflect.DeepEqual(c.Transport, r.transport) {
		lines = append(lines, "transport changed: this takes effect with the next start")
	}
	changed := changedSinks(r.options, c.Options)
	for _, name := range changed {
		lines = append(lines, "sink changed: "+name)
	}
	r.options = c.Options
	if len(lines) == 0 {
		r.log.Info("the configuration was read again; nothing differs", "file", r.path)
		return
	}
	r.log.Info("the configuration was changed and is taken over", "file", r.path, "differences", len(lines))
	for _, l := range lines {
		r.log.Info(l)
	}
	for _, name := range changed {
		if err := r.retry(ctx, name); err != nil {
			r.log.Warn("the pending notifications of a changed sink are attempted when they are due, not at once", "sink", name, "err", err)
		}
	}
}

// changedSinks are the names of the sinks in both whose options differ.
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
