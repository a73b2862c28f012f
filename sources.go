package vokter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// sourcePauses are the waits before a source that failed is run again. The last one repeats.
var sourcePauses = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute}

// healthyAfter is how long a source must run without a failure until it counts as healthy, if it
// pushes nothing.
const healthyAfter = 5 * time.Minute

// runSources waits until the Router works and runs the sources until ctx is done.
func (r *Router) runSources(ctx context.Context) error {
	select {
	case <-r.running:
	case <-ctx.Done():
		return nil
	}
	var g sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Sources)) {
		f := &sourceRunner{
			source: r.cfg.Sources[name], publisher: r.transport, log: r.cfg.Logger.With("source", name), now: r.cfg.Now, sleep: sleepContext,
		}
		g.Go(func() { f.run(ctx) })
	}
	g.Wait()
	return nil
}

// sourceRunner runs one source.
type sourceRunner struct {
	source    pipeline.Source
	publisher flow.Publisher
	log       *slog.Logger
	now       func() time.Time
	sleep     func(context.Context, time.Duration) error
	// pushed says that the source pushed a page since it was started.
	pushed atomic.Bool
}

// run runs the source, again after each failure, until it returns nil or ctx is done. Only the
// first failure of an outage is logged as a warning. An outage ends when the source pushes a
// page or runs for healthyAfter.
func (f *sourceRunner) run(ctx context.Context) {
	failures := 0
	for {
		f.pushed.Store(false)
		began := f.now()
		err := f.runOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			f.log.Info("the source has ended")
			return
		case f.pushed.Load() || f.now().Sub(began) >= healthyAfter:
			failures = 0
		}
		if failures == 0 {
			f.log.Warn("a source failed and is run again; further failures are logged at level debug", "err", err)
		} else {
			f.log.Debug("a source failed again", "failures", failures+1, "err", err)
		}
		pause := sourcePauses[min(failures, len(sourcePauses)-1)]
		failures++
		if f.sleep(ctx, pause) != nil {
			return
		}
	}
}

// runOnce runs the source once. A panic is an error with its stack.
func (f *sourceRunner) runOnce(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f.source.Run(ctx, f.emit)
}

// emit publishes p. A page that is too large to be published goes to the dead letters without
// its body. A page without a valid URL goes there when index handles it.
func (f *sourceRunner) emit(ctx context.Context, p pipeline.Pushed) error {
	m := flow.PushedMessage(p)
	if len(m.Body) > pipeline.MaxPushed {
		d := flow.DeadLetter{
			Reason: fmt.Sprintf("the page has %d bytes; at most %d are taken", len(m.Body), pipeline.MaxPushed),
			Time:   f.now(), Attempts: 1, Group: flow.GroupFetch, Topic: flow.TopicIngest, Headers: m.Metadata(),
		}
		m = d.Message(messageID(m), m.Key, m.Subject)
	}
	if err := f.publisher.Publish(ctx, m); err != nil {
		return err
	}
	f.pushed.Store(true)
	if err := pageurl.Check(p.URL); err != nil { // report it to the source at once
		return fmt.Errorf("%w: %w", pipeline.ErrUnusable, err)
	}
	return nil
}

// messageID returns the ID of m, or one derived from its content if it has none.
func messageID(m flow.Message) string {
	if m.ID != "" {
		return m.ID
	}
	return flow.DeriveID("ingest", m.Subject, string(m.Body))
}
