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

// ErrBusy says that a command was not decided within 5 seconds. It may still be carried out.
var ErrBusy = errors.New("the command was not decided within 5 seconds; ask again")

// OriginAPI is the origin of subscriptions that Router.Subscribe makes. They stay in the data
// directory until they are cancelled.
const OriginAPI = flow.OriginAPI

// ErrStopped says that Run has ended.
var ErrStopped = errors.New("vokter: the router has stopped")

// decideTimeout is how long a command waits for the owner of its page.
const decideTimeout = 5 * time.Second

// Subscribe adds a subscription while the Router runs. It waits until the process that owns the
// page has decided, at most 5 seconds. The current version of the document is the baseline: the
// subscription gets the changes after it.
//
// Subscribe returns a *flow.Refusal where the client already has a subscription to the document,
// all mistakes joined where s is invalid, the error of Ready while the disk is too full, and
// ErrBusy, with the error of Ready, while a shared transport reassigns pages or reaches no broker.
func (r *Router) Subscribe(ctx context.Context, s pipeline.Subscription) error {
	s = s.WithDefaults()
	valid := r.live.Load().validate
	if r.cfg.Mode == ModeCommands { // it does not know the sinks
		valid = func(s pipeline.Subscription) error { return CheckSubscription(s) }
	}
	if err := valid(s); err != nil {
		return err
	}
	return r.command(ctx, s.URL, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: s, Origin: OriginAPI})
}

// Cancel ends the subscriptions of client on the page of url. An empty client means "default", the
// client of subscriptions that name none. It waits for the decision as Subscribe does; changes
// found afterwards notify nobody. It returns a *flow.Refusal where client has no subscription
// there.
func (r *Router) Cancel(ctx context.Context, url, client string) error {
	return r.command(ctx, url, flow.TypeCancel, flow.CancelCommand{URL: url, Client: client})
}

// CancelTo is Cancel of only those subscriptions that Subscribe made and that are delivered to sink
// alone. It keeps a client that proves itself by nothing else than the name of its sink from ending
// other subscriptions.
func (r *Router) CancelTo(ctx context.Context, url, client, sink string) error {
	return r.command(ctx, url, flow.TypeCancel, flow.CancelCommand{URL: url, Client: client, Sink: sink})
}

// Pause ends the subscriptions of client on the page of url until the time until, or until Resume
// restarts them if that is earlier or until is zero. Meanwhile they are listed as paused: changes
// notify nobody, and the page is not checked for them. If nobody else watches the page, its stored
// versions are deleted. Notifications of earlier changes are still delivered. For subscriptions that
// are paused already, until replaces the end of the pause. An empty client means "default". Pause waits
// for the decision as Subscribe does. It returns a *pipeline.FieldError where until has passed, and a
// *flow.Refusal where client has no subscription there.
func (r *Router) Pause(ctx context.Context, url, client string, until time.Time) error {
	if !until.IsZero() && !until.After(r.cfg.Now()) {
		return &pipeline.FieldError{Field: "until", Reason: until.Format(time.RFC3339) + " has passed; name a later time, or leave it out to pause until a resume"}
	}
	return r.command(ctx, url, flow.TypePause, flow.PauseCommand{URL: url, Client: client, Until: until})
}

// CheckNow makes the page of url due now, whatever its schedule; the waits that its host asked for
// are kept. It returns when the command is stored, and does not wait for the check. It returns a
// *flow.Refusal where the page is not watched or is never fetched.
func (r *Router) CheckNow(ctx context.Context, url string) error {
	pages, _, err := r.Pages(ctx, inspect.ListFilter{URL: url})
	switch {
	case err != nil:
		return err
	case len(pages) == 0:
		return &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s is not watched", url)}
	case pages[0].State == inspect.StateExpired || pages[0].State == inspect.StatePaused:
		return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("%s is %s; resume it", url, pages[0].State)}
	case pages[0].Pushed:
		return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("%s is never fetched: its subscriptions have the interval never", url)}
	}
	m, err := newCommand(url, flow.TypeCheckNow, nil, r.cfg.Now())
	if err != nil {
		return err
	}
	if err := r.transport.Ready(); err != nil {
		return err
	}
	return r.unlessClosing(r.transport.Publish(ctx, m))
}

// Resume restarts the expired and paused subscriptions of client on the page of url, each with the
// version that is then current as its baseline: the next one, if nobody else watched the page. An empty client means all clients, unlike in Cancel. It waits for the
// decision as Subscribe does, and returns a *flow.Refusal where no such subscription is expired.
func (r *Router) Resume(ctx context.Context, url, client string) error {
	return r.command(ctx, url, flow.TypeResume, flow.ResumeCommand{URL: url, Client: client})
}

// command publishes a command to the owner of the page of url and waits for its decision.
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

// newCommand returns a command to the owner of the page of url, sent at the given time. Its ID is
// random, so that the same command can be sent twice.
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

// decisions passes the decisions of index to the commands that wait for them.
type decisions struct {
	mu      sync.Mutex
	waiting map[string]chan error
}

func newDecisions() *decisions { return &decisions{waiting: make(map[string]chan error)} }

// expect returns the channel that receives the decision about the command id.
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

// decided is called by index once the decision is committed.
func (d *decisions) decided(id string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.waiting[id]; c != nil {
		c <- err
		delete(d.waiting, id)
	}
}

// tailDecisions starts reading the decisions of other processes. It returns a function that passes
// them on until ctx is done. Decisions of this process arrive through decided, before they can be
// read here.
func (r *Router) tailDecisions(ctx context.Context) (read func() error, err error) {
	messages, err := r.transport.Tail(ctx, flow.TopicDecisions)
	if err != nil {
		return nil, fmt.Errorf("reading the decisions of other processes: %w", err)
	}
	return func() error {
		for m := range messages {
			r.decisions.receive(m)
		}
		if ctx.Err() == nil {
			return errors.New("reading the decisions of other processes ended")
		}
		return nil
	}, nil
}

// receive passes a decision message on. Anybody can write to the topic: a message that cannot be
// decoded is not about a command of this process and is dropped.
func (d *decisions) receive(m flow.Message) {
	decision, err := flow.DecisionFrom(m)
	switch {
	case m.Type != flow.TypeDecision || err != nil:
	case decision.Code == 0:
		d.decided(decision.Command, nil)
	default:
		d.decided(decision.Command, &flow.Refusal{Code: decision.Code, Message: decision.Reason})
	}
}

// DeadLetters returns the dead letters that f selects, the oldest first. Those of messages that
// could not be handled come without their bodies and without headers that may hold passwords.
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

// receiverOf returns the ID of the receiver of d, or an empty string if it has none.
func receiverOf(d flow.DeadLetter) string {
	if d.Addressed == nil {
		return ""
	}
	return d.Addressed.Receiver.Sink
}

// Replay queues the notifications among the dead letters that f selects for delivery again, and
// returns how many there are. They keep their IDs. A receiver may get an ID that it already has,
// because a replay ignores the record of delivered IDs. When Replay returns, its commands are
// durable. An expired receiver is active again after its first successful delivery.
func (r *Router) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	if err := r.readable(ctx); err != nil {
		return 0, err
	}
	if err := r.transport.Ready(); err != nil {
		return 0, err
	}
	f.Messages = false // they are not notifications
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

// letters calls found for each dead letter that f selects, with the key under which it is kept.
func (r *Router) letters(ctx context.Context, f flow.DeadFilter, found func(key string, d flow.DeadLetter)) error {
	for key, st := range r.transport.States(flow.GroupDead, "") {
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

// RetryFilter selects the receivers for Retry. Empty fields select all.
type RetryFilter struct {
	Sink string `json:"sink,omitempty"`
	// URL selects the receivers with a pending notification about this page.
	URL string `json:"url,omitempty"`
}

// Retried is a receiver whose pending notifications are attempted again.
type Retried struct {
	Sink string `json:"sink"`
	// Waiting is how many of the pending notifications the filter selects. Those collected for a
	// digest do not count: they wait for the end of the digest.
	Waiting int `json:"waiting"`
	// Elsewhere says that another process owns the receiver and was asked to retry. Waiting is 0
	// then, because only the owner knows the number.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Retry attempts the pending notifications of the receivers that f selects at once, instead of when
// their next attempt is due. Use it when a receiver works again. Each receiver gets its
// notifications in order, the oldest first. Retry returns these receivers and does not wait for the
// attempts. It fails where f.URL is not a URL, with a *flow.Refusal where f.Sink does not exist,
// and where the command cannot be stored.
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

// toRetry returns the receivers of a sink (of all sinks if it is empty) with a pending notification
// about page (about any page if it is empty), and those that other processes own.
func (r *Router) toRetry(sink, page string) ([]Retried, error) {
	tried := []Retried{}
	for id, st := range r.transport.States(flow.GroupDelivery, "") {
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
	if len(tried) == 0 && sink != "" && !r.live.Load().hasSink(sink) {
		names := slices.Sorted(maps.Keys(r.live.Load().Sinks))
		return nil, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; %s", sink, nearest.Hint(sink, names))}
	}
	return tried, nil
}

// List returns the pages and receivers that f selects; see [inspect.List]. It waits until the
// Router runs, and fails once Run has ended.
func (r *Router) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	if err := r.readable(ctx); err != nil {
		return inspect.Listing{Pages: []inspect.Page{}, Receivers: []inspect.Receiver{}}, err
	}
	l, err := inspect.List(ctx, r.transport, f, slices.Collect(maps.Keys(r.live.Load().Sinks)))
	return l, r.unlessClosing(err)
}

// Receivers returns receivers with their state; see [inspect.Receivers].
func (r *Router) Receivers(ctx context.Context, f inspect.ListFilter) ([]inspect.Receiver, error) {
	if err := r.readable(ctx); err != nil {
		return []inspect.Receiver{}, err
	}
	found, err := inspect.Receivers(ctx, r.transport, f, slices.Collect(maps.Keys(r.live.Load().Sinks)))
	return found, r.unlessClosing(err)
}

// Pages returns a part of the pages of List; see [inspect.Pages]. Only one list is made at a time, to
// leave processors to the stages.
func (r *Router) Pages(ctx context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error) {
	if err := r.readable(ctx); err != nil {
		return []inspect.Page{}, "", err
	}
	if f.URL == "" {
		select {
		case r.listing <- struct{}{}:
			defer func() { <-r.listing }()
		case <-ctx.Done():
			return []inspect.Page{}, "", context.Cause(ctx)
		}
	}
	pages, next, err = inspect.Pages(ctx, r.transport, f)
	return pages, next, r.unlessClosing(err)
}

// Explain returns what the last checks of the page of url found, what happened to its last changes,
// and why keywords did not match; see [inspect.Explain]. It waits until the Router runs, and fails
// once Run has ended. Only one call works at a time, to leave processors to the stages.
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

// Deliveries returns the notifications of the last changes of the page of url with their
// deliveries; see [inspect.Deliveries]. It waits until the Router runs, and fails once Run has ended.
func (r *Router) Deliveries(ctx context.Context, url string, f inspect.ExplainFilter) ([]inspect.Change, error) {
	if err := r.readable(ctx); err != nil {
		return nil, err
	}
	c, err := inspect.Deliveries(r.transport, url, f)
	return c, r.unlessClosing(err)
}

// moving is how old the list of recent changes may be where processes share the pages: changes of
// pages that came from another process are not observed.
const moving = time.Minute

// Recent returns the newest changes of all pages, the newest first; see [inspect.Recent]. If there
// may be more than f.Limit, next is the value of f.After with which the list goes on. Recent waits
// until the Router runs, and fails once Run has ended.
func (r *Router) Recent(ctx context.Context, f inspect.RecentFilter) (changes []inspect.RecentChange, next string, err error) {
	if err := r.readable(ctx); err != nil {
		return []inspect.RecentChange{}, "", err
	}
	maxAge := moving
	if r.cfg.Transport == nil {
		maxAge = 0
	}
	changes, next, err = r.recent.Changes(ctx, r.transport, f, maxAge)
	return changes, next, r.unlessClosing(err)
}

// maxPreviews is how many pages Preview fetches at once.
const maxPreviews = 4

// Preview fetches the page of s once and returns the text that s would watch, with the places of its
// keywords. Nothing is stored, and s needs no sink. With source it also returns the body of the page. It
// fails with all mistakes joined where s is invalid, and with a *pipeline.FetchError where the page
// cannot be fetched or read, for example because a selector matches nothing. It waits until the Router
// runs, and while other previews are made.
func (r *Router) Preview(ctx context.Context, s pipeline.Subscription, source bool) (inspect.Preview, error) {
	s.Sinks = []string{"none"}
	s = s.WithDefaults()
	if err := CheckSubscription(s); err != nil {
		return inspect.Preview{}, err
	}
	page, err := pageurl.Canonical(s.URL)
	if err != nil {
		return inspect.Preview{}, err
	}
	if err := r.readable(ctx); err != nil {
		return inspect.Preview{}, err
	}
	select {
	case r.previewing <- struct{}{}:
		defer func() { <-r.previewing }()
	case <-ctx.Done():
		return inspect.Preview{}, context.Cause(ctx)
	}
	o, err := r.stages.fetch.Preview(ctx, page, s.View)
	if err != nil {
		return inspect.Preview{}, err
	}
	return inspect.PreviewOf(o, s, r.languages, source)
}

// Change replaces the subscription of s.Client to a document of the page of s.URL by s, without a new
// baseline where s watches the same document. Document is the ID of the document. Only a subscription
// that was made at run time can be replaced. Change waits for the decision as Subscribe does, and fails
// like Subscribe; it returns a *flow.Refusal where there is no such subscription.
func (r *Router) Change(ctx context.Context, document string, s pipeline.Subscription) error {
	s = s.WithDefaults()
	if err := r.live.Load().validate(s); err != nil {
		return err
	}
	pages, _, err := r.Pages(ctx, inspect.ListFilter{URL: s.URL, Client: s.Client})
	if err != nil {
		return err
	}
	all, found := []pipeline.Subscription{s}, false
	for _, p := range pages {
		for _, x := range p.Subscriptions {
			switch {
			case x.Document == document && x.Origin != OriginAPI:
				return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("the subscription of %q comes from the configuration; change it there", s.Client)}
			case x.Document == document && x.State != inspect.StateActive:
				return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("the subscription of %q is %s; resume it first", s.Client, x.State)}
			case x.Document == document:
				found = true
			case x.Origin == OriginAPI && x.State == inspect.StateActive && x.FollowedFrom == "":
				all = append(all, x.Subscription)
			}
		}
	}
	if !found {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s is not watched for client %q", s.URL, s.Client)}
	}
	return r.command(ctx, s.URL, flow.TypeApply, flow.ApplyCommand{URL: s.URL, Origin: OriginAPI, Client: s.Client, Subscriptions: all})
}

// Summary returns the counts of what the Router has done since Run started.
func (r *Router) Summary() inspect.Summary {
	s := r.tally.Summary()
	s.Pending = int(r.waiting.Load())
	return s
}
