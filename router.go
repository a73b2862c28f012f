// Package vokter watches documents on the web. It fetches pages, keeps versions of their texts,
// finds what was added or removed, and notifies the subscriptions whose keywords are in a change.
//
// A [Router] chains the stages fetch, index, diff, match and delivery as Watermill handlers over a
// transport. Build one with [New] from a [Config], and call [Router.Run]. Without a data directory
// everything is kept in memory. Package pipeline has the words that a program needs beside it:
// Subscription, Notification, Sink, Source, Reader. Package inspect has what [Router.List] and
// [Router.Explain] return, package pipeline/flow what [Router.Handle] needs.
//
// The file docs/embedding.md says how a Router starts, stops and fails, where its state is, and how to
// test with it.
package vokter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch"
)

// maxIdleWorkers is how many idle goroutines are kept for the next messages.
const maxIdleWorkers = 64

// Router chains the stages over a transport. Several Routers may run in one process.
type Router struct {
	cfg            Config
	transport      flow.Transport
	readers        *fetch.Readers
	languages      *text.Languages
	extraConsumers []consumer
	decisions      *decisions
	tally          *inspect.Tally
	meter          inspect.Meter
	tracer         span.Tracer
	observers      observers
	runCalled      atomic.Bool
	running        chan struct{}
	// startTook is how long the start took, in nanoseconds; 0 before its end.
	startTook atomic.Int64
	ended     chan struct{}
	workers   *memory.Pool
	notReady  atomic.Pointer[error]
	// keptNotifications is how many notifications were kept when Run ended.
	keptNotifications atomic.Int64
	// transportClosing says that the transport is being closed, so that reads may fail.
	transportClosing atomic.Bool
	// stopErr receives the error that makes Run stop.
	stopErr chan error
	// finish is closed when Finish is called.
	finish     chan struct{}
	finishOnce sync.Once
	// stages are those of Run, set before running is closed.
	stages *stages
	// liveConfig is the part of the configuration that Reload replaces.
	liveConfig atomic.Pointer[Config]
	// cachedChangeSinks says who gets the change records of a page, by the Config that it was made of.
	cachedChangeSinks atomic.Pointer[changeSinks]
	// These bound how many calls work at once: explainSlots those of Explain, listSlots of Pages,
	// previewSlots of Preview, and compareSlots of all that read the texts of stored versions.
	explainSlots, listSlots, previewSlots, compareSlots semaphore
	recent                                              *inspector.Recent
	lists                                               lists
	reloadMu                                            sync.Mutex
	// requestedChecks holds the pages whose first check this run asked for, because of Config.Checks or
	// Config.Every. It is guarded by reloadMu.
	requestedChecks pageSet
	// reloadFailed says that a Reload failed after it had begun to publish. It is guarded by reloadMu.
	reloadFailed bool
	// rejected are the messages that a Watermill middleware rejects again and again.
	rejected rejectedMessages
}

// consumer is a consumer group of a topic with its processor.
type consumer struct {
	group, topic string
	processor    flow.Processor
}

// New returns a Router for cfg, or all that is wrong with cfg. It copies the lists, maps and settings in cfg: the
// caller may change them at once, and a change takes effect with the next Reload.
func New(cfg Config) (*Router, error) {
	cfg = cfg.clone().withDefaults()
	if err := errors.Join(cfg.Validate(), cfg.validateWork()); err != nil {
		return nil, err
	}
	readers, languages, err := buildPlugins(cfg)
	if err != nil {
		return nil, err
	}
	r := &Router{
		cfg: cfg, transport: cfg.Transport, readers: readers, languages: languages,
		decisions: newDecisions(), lists: lists{settled: make(map[string]bool)}, tally: inspect.NewTally(), running: make(chan struct{}), ended: make(chan struct{}),
		workers: memory.NewPool(maxIdleWorkers), stopErr: make(chan error, 1), finish: make(chan struct{}),
		explainSlots: make(semaphore, 1), listSlots: make(semaphore, 1), previewSlots: make(semaphore, maxPreviews), compareSlots: make(semaphore, maxComparisons()),
		requestedChecks: make(pageSet),
		recent:          inspector.NewRecent(),
	}
	r.liveConfig.Store(&cfg)
	r.meter.Sinks, r.tracer = r.sinkNames, span.New(cfg.TracerProvider)
	return r, nil
}

// Handle adds a consumer of topic beside the stages: the consumer group gets every message of
// topic, with a transaction and state of its own. Call Handle before Run. Run fails where group is
// one of the stages, already consumes topic, or p is nil.
//
// Register the same groups before every Run with ModeAll on a data directory. A group that is
// missing in one Run loses its state and its position, and starts like a new one when it is
// registered again. vokter-stream registers none, so do not use it on such a directory.
func (r *Router) Handle(group, topic string, p flow.Processor) {
	r.extraConsumers = append(r.extraConsumers, consumer{group, topic, p})
}

// Running returns a channel that is closed once the Router works and has sent the subscriptions
// of its Config to their pages. Where the disk is full or the transport is not ready the
// subscriptions wait, and Ready returns the reason.
func (r *Router) Running() <-chan struct{} { return r.running }

// Ready returns nil while the Router works. Otherwise it returns the reason: it is starting, it has ended, the disk of
// Config.Dir has less than Config.MinFree, as many pages as are read at once take endlessly to read, a Watermill
// middleware rejects a message again and again, or an error of Config.Transport. It returns at once. The reason names
// no page, URL or receiver, so that it can be shown to everybody. Only ErrStopped is followed by the error of Run,
// which may name them.
func (r *Router) Ready() error {
	if err := r.notReady.Load(); err != nil {
		return *err
	}
	if err := r.rejected.err(); err != nil {
		return err
	}
	select {
	case <-r.running:
		if n, all := r.readers.Stuck(); all {
			return fmt.Errorf("the readings of %d pages do not end: explain says of which, and a simpler selector mends it", n)
		}
		return r.transport.Ready()
	default:
		if given := r.cfg.Transport; given != nil { // the embedded transport is opened by Run and may not exist yet
			if err := given.Ready(); err != nil {
				return fmt.Errorf("starting: %w", err)
			}
		}
		if given := r.cfg.Watermill; given != nil && !given.IsRunning() {
			return errors.New("starting: the message.Router of Config.Watermill does not run yet")
		}
		return errors.New("starting")
	}
}

// Run works as its Config says until ctx is done or every page had Config.Checks checks. Then it
// starts no further fetch, delivers the notifications that are due, and returns nil. It returns an
// error where it cannot start (the data directory is in use), where the store fails, where
// notifications are lost because there is no data directory to keep them, and where every check that
// Config.Checks asked for failed (ErrNothingRead). It may be called once.
func (r *Router) Run(ctx context.Context) (err error) {
	if r.runCalled.Swap(true) {
		return errors.New("vokter: Run was called before")
	}
	defer func() {
		r.setNotReady(err)
		close(r.ended)
	}()
	defer r.closeSinks()
	err = (&run{Router: r, began: time.Now(), broken: make(chan error, maxStarted)}).run(ctx)
	if err == nil && r.cfg.Checks > 0 {
		err = r.nothingRead()
	}
	return err
}

// nothingRead returns an ErrNothingRead where checks were made and all of them failed.
func (r *Router) nothingRead() error {
	n := r.tally.Counts()
	if n.Failed == 0 || n.Failed < n.Checks {
		return nil
	}
	errs, last := []error{ErrNothingRead}, ""
	for _, d := range r.tally.Summary().Documents { // those of a page follow each other
		if d.LastError != "" && d.URL != last && len(errs) <= maxNamedFailures {
			errs, last = append(errs, fmt.Errorf("%s: %s", pageurl.Redacted(d.URL), d.LastError)), d.URL
		}
	}
	return errors.Join(errs...)
}

// Finish makes Run start no further checks, deliver the notifications that are due within 30
// seconds, and return. Finish itself returns at once.
func (r *Router) Finish() { r.finishOnce.Do(func() { close(r.finish) }) }

// stopWith ends Run with err.
func (r *Router) stopWith(err error) {
	select {
	case r.stopErr <- err:
	default: // Run is stopping already
	}
}

// closeSinks closes the sinks. The second call does nothing.
func (r *Router) closeSinks() {
	var d *delivery.Delivery
	if r.stages != nil {
		d = r.stages.delivery
	} else {
		d = delivery.NewDelivery(delivery.Config{Sinks: r.cfg.Sinks, Logger: r.cfg.Logger})
	}
	d.Reconfigure(nil, delivery.Policy{})
}

// stoppedIfClosing returns err, or ErrStopped where the end of Run may have caused err.
func (r *Router) stoppedIfClosing(err error) error {
	if err != nil && r.transportClosing.Load() {
		return ErrStopped
	}
	return err
}

// setNotReady makes Ready return ErrStopped, joined with err if it is not nil.
func (r *Router) setNotReady(err error) {
	if err == nil {
		err = ErrStopped
	} else {
		err = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	r.notReady.Store(&err)
}

// checkGroups refuses consumers that would take messages from a stage.
func (r *Router) checkGroups() error {
	seen := map[consumer]bool{}
	for _, b := range r.extraConsumers {
		if b.processor == nil {
			return fmt.Errorf("vokter: Handle: the processor of group %q for %q is nil", b.group, b.topic)
		}
		switch b.group {
		case "", flow.GroupFetch, flow.GroupIndex, flow.GroupDiff, flow.GroupMatch, flow.GroupDelivery,
			flow.GroupDead, flow.GroupHealth:
			return fmt.Errorf("vokter: Handle: %q is not a free group name", b.group)
		}
		if b.topic == flow.TopicSnapshots {
			return fmt.Errorf("vokter: Handle: snapshots have no queue of their own; consume %q, or set Config.Middleware of %q", flow.TopicChanges, flow.GroupDiff)
		}
		key := consumer{group: b.group, topic: b.topic}
		if seen[key] {
			return fmt.Errorf("vokter: Handle: group %q consumes %q twice", b.group, b.topic)
		}
		seen[key] = true
	}
	return nil
}

// waitReadable waits until the store can be read, and says why it cannot.
func (r *Router) waitReadable(ctx context.Context) error {
	select {
	case <-r.running:
	case <-r.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-r.ended:
		return r.Ready()
	default:
		return nil
	}
}

// RegisterReader makes rd read its content types from the next check on, in place of the reader
// that did so far. It may be called at any time.
func (r *Router) RegisterReader(rd pipeline.Reader) { r.readers.Register(rd) }

// UnregisterReader removes the readers of these content types. Checks of such pages then fail, and
// their last version stays the current one. It may be called at any time.
func (r *Router) UnregisterReader(contentTypes ...string) { r.readers.Unregister(contentTypes...) }

// RegisterStemmer makes s stem the words of its language from the next change on, in place of the
// stemmer that did so far. It may be called at any time.
func (r *Router) RegisterStemmer(s pipeline.Stemmer) { r.languages.Register(s) }

// UnregisterStemmer removes the stemmer of a language, a BCP 47 primary subtag, from the next
// change on. It may be called at any time.
func (r *Router) UnregisterStemmer(language string) { r.languages.Unregister(language) }

// RegisterStopwords sets the stop words of a language, a BCP 47 primary subtag, in place of
// those so far. Nil means none. It may be called at any time.
func (r *Router) RegisterStopwords(language string, words []string) {
	r.languages.RegisterStopwords(language, words)
}

// version is set by the linker for a release.
var version string

// Version returns the version of this module: that of the release, that of the module in the
// program that embeds it, or "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/vokter/vokter" && m.Version != "" && m.Version != "(devel)" {
				return m.Version
			}
		}
	}
	return "dev"
}
