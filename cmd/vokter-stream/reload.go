package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
)

// lookEvery is the time between two looks at the configuration of a running pipeline.
const lookEvery = 2 * time.Second

// reloader reads a configuration again on SIGHUP, and where the file has changed.
type reloader struct {
	path    string
	load    func() (*config.Config, error)
	apply   func(context.Context, vokter.Config) ([]string, error)
	hangups <-chan os.Signal
	// look comes when the file is to be looked at.
	look   <-chan time.Time
	log    *slog.Logger
	listen string
	kafka  *config.Kafka
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

// contentOf reads no pipe: that would take from it, and find nothing the next time.
func contentOf(path string) content {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return content{err: path + " is no plain file, so that it cannot be read again"}
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return content{err: err.Error()}
	}
	return content{sum: sha256.Sum256(b)}
}

// run reloads until ctx is done.
func (r *reloader) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			r.seen = contentOf(r.path)
			r.reload(ctx)
		case <-r.look:
			now := contentOf(r.path)
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
	c, err := r.load()
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
	if !reflect.DeepEqual(c.Kafka, r.kafka) {
		lines = append(lines, "transport changed: this takes effect with the next start")
	}
	if len(lines) == 0 {
		r.log.Info("the configuration was read again; nothing differs, but perhaps the options of sinks, which are taken over", "file", r.path)
		return
	}
	r.log.Info("the configuration was changed and is taken over", "file", r.path, "differences", len(lines))
	for _, l := range lines {
		r.log.Info(l)
	}
}
