package vokter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/sinks"
)

// ErrBusy says that a command was not decided in time. It may still be carried out.
var ErrBusy = errors.New("the command was not decided within 5 seconds; ask again")

// OriginAPI is the origin of subscriptions made while the Router runs. They stay in the
// data directory until they are cancelled.
const OriginAPI = flow.OriginAPI

// ErrStopped says that Run has ended.
var ErrStopped = errors.New("vokter: the router has stopped")

// decideTimeout is how long a command waits for the owner of its page.
const decideTimeout = 5 * time.Second

// Subscribe adds a subscription while the Router runs. It returns once the owner of
// the page has stamped it: it hears what comes after the version then standing. It
// fails with a *Refusal where the pair of document and client has a subscription, with
// all that is wrong where s is invalid, with what Ready returns while the disk has too
// little room, and with ErrBusy and what Ready returns while a Transport moves lanes or
// waits for its brokers.
func (r *Router) Subscribe(ctx context.Context, s pipeline.Subscription) error {
	s = s.WithDefaults()
	if err := r.live.Load().validate(s); err != nil {
		return err
	}
	return r.command(ctx, s.URL, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: s, Origin: OriginAPI})
}

// Cancel ends the subscriptions of client on the page of url; an empty client is "default", the
// one of subscriptions that name none. It returns once that is
// decided: changes seen later notify nobody. It fails with a *Refusal where
// there is none.
func (r *Router) Cancel(ctx context.Context, url, client string) error {
	return r.command(ctx, url, flow.TypeCancel, flow.CancelCommand{URL: url, Client: client})
}

// Resume begins the expired subscriptions of client on the page of url anew, each with a
// fresh baseline; those of all clients where client is empty, unlike with Cancel. It fails with a *Refusal
// where there is none.
func (r *Router) Resume(ctx context.Context, url, client string) error {
	return r.command(ctx, url, flow.TypeResume, flow.ResumeCommand{URL: url, Client: client})
}

// command publishes a command to the owner of url's page and waits for its decision.
func (r *Router) command(ctx context.Context, url, typ string, body any) error {
	m, err := newCommand(url, typ, body, r.cfg.Now())
	if err != nil {
		return err
	}
	if err := r.readable(ctx); err != nil {
		return err
	}
	if r.transport.Room() != nil {
		if err := r.transport.Ready(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, decideTimeout, ErrBusy)
	defer cancel()
	decided := r.decisions.expect(m.ID)
	defer r.decisions.forget(m.ID)
	if err := r.transport.Publish(ctx, m); err != nil && ctx.Err() == nil {
		return r.unlessClosing(err)
	}
	select {
	case err := <-decided:
		return err
	case <-r.ended:
		return r.Ready()
	case <-ctx.Done():
		err := context.Cause(ctx)
		if why := r.transport.Ready(); why != nil && errors.Is(err, ErrBusy) {
			return fmt.Errorf("%w (%w)", err, why)
		}
		return err
	}
}

// newCommand returns a command to the owner of url's page, sent at at. Its ID is random: two
// equal commands are two.
func newCommand(url, typ string, body any, at time.Time) (flow.Message, error) {
	page, err := pageurl.Canonical(url)
	if err != nil {
		return flow.Message{}, err
	}
	m := flow.Message{
		ID: rand.Text(), Topic: flow.TopicDocuments, Key: page, Type: typ, Subject: page, Time: at,
		Header: map[string]string{"content-type": "application/json"},
	}
	if body != nil {
		if m.Body, err = json.Marshal(body); err != nil {
			return m, fmt.Errorf("encoding a command: %w", err)
		}
	}
	return m, nil
}

// decisions brings the decisions of index to those who wait for them.
type decisions struct {
	mu      sync.Mutex
	waiting map[string]chan error
}

func newDecisions() *decisions { return &decisions{waiting: make(map[string]chan error)} }

// expect returns the channel on which the decision about command id will come.
func (d *decisions) expect(id string) <-chan error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan error, 1)
	d.waiting[id] = c
	return c
}

func (d *decisions) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// decided is called by index once the decision stands.
func (d *decisions) decided(id string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.waiting[id]; c != nil {
		c <- err
		delete(d.waiting, id)
	}
}

// tailDecisions begins to read the decisions of other processes. It returns a function that
// hands them to those who wait, until ctx is done. Decisions of this process come a shorter way,
// and are known already when they come here.
func (r *Router) tailDecisions(ctx context.Context) (hear func() error, err error) {
	told, err := r.transport.Tail(ctx, flow.TopicDecisions)
	if err != nil {
		return nil, fmt.Errorf("what other processes decide cannot be heard: %w", err)
	}
	return func() error {
		for m := range told {
			r.decisions.tell(m)
		}
		if ctx.Err() == nil {
			return errors.New("what other processes decide is not heard any more")
		}
		return nil
	}, nil
}

// tell hands on what a message says; anybody can write one, and what cannot be read is
// about no command of ours.
func (d *decisions) tell(m flow.Message) {
	decision, err := flow.DecisionFrom(m)
	switch {
	case m.Type != flow.TypeDecision || err != nil:
	case decision.Code == 0:
		d.decided(decision.Command, nil)
	default:
		d.decided(decision.Command, &flow.Refusal{Code: decision.Code, Message: decision.Reason})
	}
}

// DeadLetters returns what was given up and f selects, the oldest first. Of messages
// that could not be handled the bodies are left out, and what may be passwords.
func (r *Router) DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error) {
	if err := r.readable(ctx); err != nil {
		return nil, err
	}
	var found []flow.DeadLetter
	err := r.letters(ctx, f, func(_ string, d flow.DeadLetter) {
		found = append(found, d.Listed())
	})
	slices.SortStableFunc(found, func(a, b flow.DeadLetter) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(receiverOf(a), receiverOf(b)))
	})
	return found, r.unlessClosing(err)
}

// receiverOf is the ID of the receiver of d, if it has one.
func receiverOf(d flow.DeadLetter) string {
	if d.Addressed == nil {
		return ""
	}
	return d.Addressed.Receiver.Sink
}

// Replay brings the notifications that f selects back into delivery, and returns how many
// there are. They keep their IDs, and are delivered whatever is remembered of these: a
// receiver may get what it has. When it returns the command is durable. An expired receiver
// is open again with the first success.
func (r *Router) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	if err := r.readable(ctx); err != nil {
		return 0, err
	}
	if err := r.transport.Ready(); err != nil {
		return 0, err
	}
	f.Messages = false // nobody was to receive them
	body, err := json.Marshal(flow.ReplayCommand{Filter: f})
	if err != nil {
		return 0, err
	}
	n := 0
	var commands []flow.Message
	err = r.letters(ctx, f, func(key string, _ flow.DeadLetter) {
		n++
		if len(commands) == 0 || commands[len(commands)-1].Key != key {
			commands = append(commands, flow.Message{
				ID: rand.Text(), Topic: flow.TopicDead, Key: key, Type: flow.TypeReplay, Time: r.cfg.Now(),
				Header: map[string]string{"content-type": "application/json"}, Body: body,
			})
		}
	})
	if err == nil && n > 0 {
		err = r.transport.Publish(ctx, commands...)
	}
	if err != nil {
		return 0, r.unlessClosing(err)
	}
	return n, nil
}

// letters calls found with the dead letters that f selects, and the key that keeps each.
func (r *Router) letters(ctx context.Context, f flow.DeadFilter, found func(key string, d flow.DeadLetter)) error {
	for key, st := range r.transport.States(flow.GroupDead) {
		for l, err := range sinks.Letters(st) {
			if err != nil {
				return err
			}
			if f.Selects(l.DeadLetter) {
				found(key, l.DeadLetter)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// RetryFilter selects what Retry tries. Empty fields select all.
type RetryFilter struct {
	Sink string `json:"sink,omitempty"`
	// URL selects the receivers for which something about this page waits.
	URL string `json:"url,omitempty"`
}

// Retried is a receiver for which what waits is tried.
type Retried struct {
	Sink string `json:"sink"`
	// Waiting is how many notifications wait, of those that the filter selects. What is
	// collected for a digest does not count: it waits for its time.
	Waiting int `json:"waiting"`
	// Elsewhere says that another process looks after the receiver. It is asked to try what
	// waits; how much that is, only that one knows.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Retry tries now what waits for the receivers that f selects, whatever their schedule says: for
// when a receiver was mended. Each gets what waits in order, the oldest first. It returns the
// receivers, and does not wait for how the attempts end. It fails where f.URL is no URL or
// there is no such sink, and where nothing can be stored.
func (r *Router) Retry(ctx context.Context, f RetryFilter) ([]Retried, error) {
	page := ""
	if f.URL != "" {
		var err error
		if page, err = pageurl.Canonical(f.URL); err != nil {
			return nil, err
		}
	}
	if err := r.readable(ctx); err != nil {
		return nil, err
	}
	if err := r.transport.Ready(); err != nil {
		return nil, err
	}
	tried, err := r.toRetry(f.Sink, page)
	if err != nil {
		return nil, r.unlessClosing(err)
	}
	body, err := json.Marshal(flow.RetryCommand{Page: page})
	if err != nil {
		return nil, err
	}
	commands := make([]flow.Message, 0, len(tried))
	for _, t := range tried {
		commands = append(commands, flow.Message{
			ID: rand.Text(), Topic: flow.TopicNotifications, Key: t.Sink,
			Type: flow.TypeRetry, Subject: page, Time: r.cfg.Now(),
			Header: map[string]string{"content-type": "application/json"}, Body: body,
		})
	}
	if len(commands) > 0 {
		err = r.transport.Publish(ctx, commands...)
	}
	return tried, r.unlessClosing(err)
}

// toRetry returns the receivers of a sink, or of all where it is empty, for which something about
// page waits, or anything where that is empty; and those that other processes look after.
func (r *Router) toRetry(sink, page string) ([]Retried, error) {
	tried := []Retried{}
	for id, st := range r.transport.States(flow.GroupDelivery) {
		if !r.transport.Owns(id) || sink != "" && id != sink {
			continue
		}
		n, err := sinks.Waiting(st, page)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			tried = append(tried, Retried{Sink: id, Waiting: n})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.live.Load().Sinks)) {
		if !r.transport.Owns(name) && (sink == "" || sink == name) {
			tried = append(tried, Retried{Sink: name, Elsewhere: true})
		}
	}
	if len(tried) == 0 && sink != "" && r.live.Load().Sinks[sink] == nil {
		names := slices.Sorted(maps.Keys(r.live.Load().Sinks))
		return nil, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; %s", sink, nearest.Hint(sink, names))}
	}
	return tried, nil
}

// List returns what f selects of the pages that are watched or expired, and of the receivers; see
// [inspect.List]. It waits until the Router runs, and fails once Run has ended.
func (r *Router) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	if err := r.readable(ctx); err != nil {
		return inspect.Listing{Pages: []inspect.Page{}, Receivers: []inspect.Receiver{}}, err
	}
	l, err := inspect.List(ctx, r.transport, f, slices.Collect(maps.Keys(r.live.Load().Sinks)))
	return l, r.unlessClosing(err)
}

// Explain says what the last checks of the page of url found, and what became of its last changes
// and of each keyword; see [inspect.Explain]. It waits until the Router runs, and fails once Run
// has ended. Calls wait for each other, so that they take at most one processor from the stages.
func (r *Router) Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error) {
	none := inspect.Explanation{Checks: []inspect.Check{}, Changes: []inspect.Change{}, Keywords: []inspect.Keyword{}}
	if err := r.readable(ctx); err != nil {
		return none, err
	}
	select {
	case r.explaining <- struct{}{}:
		defer func() { <-r.explaining }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	e, err := inspect.Explain(ctx, r.transport, r.languages, url, f)
	return e, r.unlessClosing(err)
}

// Summary returns what the Router did since Run began.
func (r *Router) Summary() inspect.Summary {
	s := r.tally.Summary()
	s.Pending = int(r.waiting.Load())
	return s
}

// Gauges returns figures about the Router and its Transport, by the names that docs/metrics.md
// explains. It returns at once, also before Run and after it. A figure that is not known yet is
// left out.
func (r *Router) Gauges() []flow.Gauge {
	ready := 0.0
	if r.Ready() == nil {
		ready = 1
	}
	all := append([]flow.Gauge{
		{Name: "vokter_ready", Help: "1 while the pipeline is at work, and otherwise 0; /readyz says why.", Value: ready},
	}, r.tally.Counts().Gauges()...)
	select {
	case <-r.running:
		due, parked := r.stages.delivery.Backlog(0)
		all = append(all,
			flow.Gauge{Name: "vokter_overdue_pages", Help: "Pages that are checked too late, or were in the last minute.", Value: float64(r.stages.index.Late())},
			flow.Gauge{Name: "vokter_pending_notifications", Help: "Notifications that are still to be delivered.", Value: float64(due + parked)})
		return append(all, r.transport.Gauges()...)
	default:
		if given := r.cfg.Transport; given != nil { // Run opens its own meanwhile
			all = append(all, given.Gauges()...)
		}
		return all
	}
}
