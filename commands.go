package vokter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// OriginAPI is the origin of subscriptions that Router.Subscribe makes. They stay in the data
// directory until they are cancelled.
const OriginAPI = flow.OriginAPI

// ErrStopped says that Run has ended.
var ErrStopped = errors.New("vokter: the router has stopped")

// commandTimeout is how long a command waits for the owner of its page.
const commandTimeout = 5 * time.Second

// Subscribe adds a subscription while the Router runs. It waits until the process that owns the
// page has decided, at most 5 seconds. The current version of the document is the baseline: the
// subscription gets the changes after it.
//
// Subscribe returns a *flow.Refusal where the client already has a subscription to the document,
// all mistakes joined where s is invalid, the error of Ready while the disk is too full, and
// flow.ErrBusy, with the error of Ready, while a shared transport reassigns pages or reaches no broker.
func (r *Router) Subscribe(ctx context.Context, s pipeline.Subscription) error {
	s = s.WithDefaults()
	if err := r.checkSubscription(s); err != nil {
		return err
	}
	return r.runCommand(ctx, s.URL, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: s, Origin: OriginAPI})
}

// AccessClients returns the clients that the access setting of page names: the tokens of other clients
// must neither watch nor try the page, since it is fetched with credentials. It returns ok false where page has no such
// setting.
func (r *Router) AccessClients(page string) (clients []string, ok bool) {
	canonical, err := pageurl.Canonical(page)
	if err != nil {
		return nil, false // nothing fetches it
	}
	return r.stages.httpFetcher.Clients(canonical)
}

// checkSubscription returns an error if the Router cannot serve s. The caller has filled in the defaults of s.
func (r *Router) checkSubscription(s pipeline.Subscription) error {
	if r.cfg.Mode == ModeCommands { // it knows neither the sinks nor the fetchers
		return CheckSubscription(s)
	}
	return errors.Join(r.liveConfig.Load().validateSubscription(s), checkStems(s, r.languages))
}

// Cancel ends the subscriptions of client on the page of url. An empty client means "default", the
// client of subscriptions that name none. It waits for the decision as Subscribe does; changes
// found afterwards notify nobody. It returns a *flow.Refusal where client has no subscription
// there.
func (r *Router) Cancel(ctx context.Context, url, client string) error {
	return r.runCommand(ctx, url, flow.TypeCancel, flow.CancelCommand{URL: url, Client: client})
}

// CancelTo is Cancel of only those subscriptions that Subscribe made and that are delivered to sink
// alone. It keeps a client that proves itself by nothing else than the name of its sink from ending
// other subscriptions.
func (r *Router) CancelTo(ctx context.Context, url, client, sink string) error {
	return r.runCommand(ctx, url, flow.TypeCancel, flow.CancelCommand{URL: url, Client: client, Sink: sink})
}

// Pause ends the subscriptions of client on the page of url until the time until, or until Resume
// restarts them if that is earlier or until is zero. Meanwhile they are listed as paused: changes
// notify nobody, and the page is not checked for them. Its stored versions stay. Notifications of earlier
// changes are still delivered. For subscriptions that are paused already, until replaces the end of the
// pause. An empty client means "default". Pause waits for the decision as Subscribe does. It returns a
// *pipeline.FieldError where until has passed or is behind the year 9999, and a *flow.Refusal where client has no
// subscription there.
func (r *Router) Pause(ctx context.Context, url, client string, until time.Time) error {
	if !until.IsZero() && !until.After(r.cfg.Now()) {
		return &pipeline.FieldError{Field: "until", Reason: until.Format(time.RFC3339) + " has passed; name a later time, or leave it out to pause until a resume"}
	}
	if err := flow.CheckTime(until); err != nil {
		return &pipeline.FieldError{Field: "until", Reason: err.Error() + "; leave it out to pause until a resume"}
	}
	return r.runCommand(ctx, url, flow.TypePause, flow.PauseCommand{URL: url, Client: client, Until: until})
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
	return r.stoppedIfClosing(r.transport.Publish(ctx, m))
}

// Resume restarts the expired and paused subscriptions of client on the page of url, each with the
// version that is then current as its baseline: what the next check finds, if nobody else watched the
// page. An empty client means all clients, unlike in Cancel. It waits for the decision as Subscribe does,
// and returns a *flow.Refusal where no such subscription is expired.
func (r *Router) Resume(ctx context.Context, url, client string) error {
	return r.runCommand(ctx, url, flow.TypeResume, flow.ResumeCommand{URL: url, Client: client})
}

// runCommand publishes a command to the owner of the page of url and waits for its decision.
func (r *Router) runCommand(ctx context.Context, url, typ string, body any) error {
	if err := r.waitForCommands(ctx); err != nil {
		return err
	}
	b := r.newBatch(func(_ string, d flow.Decision) error {
		for _, a := range d.Applied {
			if a.Outcome == flow.AppliedRefused {
				return &flow.Refusal{Code: flow.CodeConflict, Message: a.Reason}
			}
		}
		return d.Err()
	})
	defer b.close()
	if err := b.add(ctx, url, typ, body); err != nil {
		return err
	}
	return b.finish(ctx)
}

// waitForCommands waits until commands can be published, and returns an error where they cannot.
func (r *Router) waitForCommands(ctx context.Context) error {
	if err := r.waitReadable(ctx); err != nil {
		return err
	}
	if r.transport.Room() != nil {
		return r.transport.Ready()
	}
	return nil
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
	waiting map[string]chan<- flow.Decision
}

func newDecisions() *decisions { return &decisions{waiting: make(map[string]chan<- flow.Decision)} }

// expect has the decision about the command id sent to c, which must have room for it.
func (d *decisions) expect(id string, c chan<- flow.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = c
}

// forget ends the wait for the decision about the command id.
func (d *decisions) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
}

// resolve passes a decision to whoever waits for it. Index calls it once the decision is committed.
func (d *decisions) resolve(of flow.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.waiting[of.Command]; c != nil {
		c <- of
		delete(d.waiting, of.Command)
	}
}

// tailDecisions starts reading the decisions of other processes. It returns a function that passes
// them on until ctx is done. Decisions of this process arrive through resolve, before they can be
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
	if of, err := flow.DecisionFrom(m); m.Type == flow.TypeDecision && err == nil {
		d.resolve(of)
	}
}

// Change replaces the subscription of s.Client to a document of the page of s.URL by s, without a new
// baseline where s watches the same document. Document is the ID of the document. Only a subscription
// that was made at run time can be replaced. Change waits for the decision as Subscribe does, and fails
// like Subscribe; it returns a *flow.Refusal where there is no such subscription.
func (r *Router) Change(ctx context.Context, document string, s pipeline.Subscription) error {
	s = s.WithDefaults()
	if err := r.checkSubscription(s); err != nil {
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
				return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("the subscription of %q comes from %s; change it there", s.Client, sourceOf(x.Origin))}
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
	return r.runCommand(ctx, s.URL, flow.TypeApply, flow.ApplyCommand{URL: s.URL, Origin: OriginAPI, Client: s.Client, Subscriptions: all})
}

// sourceOf says where subscriptions of origin come from.
func sourceOf(origin string) string {
	if flow.MadeAtRunTime(origin) {
		return "the list " + strings.TrimPrefix(origin, flow.ListOrigin(""))
	}
	return "the configuration"
}

// TestSink sends a test message through the sink called name, once and beside the notifications that
// wait for it, within the timeout of the sink. If that succeeds, what waits is attempted at once. It returns the
// error of the sink, and a *flow.Refusal where there is no such sink. It waits until the Router runs.
func (r *Router) TestSink(ctx context.Context, name string) error {
	if err := r.waitReadable(ctx); err != nil {
		return err
	}
	known, err := r.stages.delivery.Try(ctx, name, TestNotification(r.cfg.Now()))
	if !known {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; %s", name, nearest.Hint(name, r.sinkNames()))}
	}
	if err == nil {
		if _, failed := r.Retry(ctx, flow.RetryFilter{Sink: name}); failed != nil {
			r.cfg.Logger.Warn("the notifications that wait for a tested sink are attempted when they are due, not at once", "sink", name, "err", failed)
		}
	}
	return err
}

// TestNotification returns the notification that a test of a sink sends. Each of its parts says that it is a test,
// because not every receiver shows all parts.
func TestNotification(now time.Time) pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/vokter-test", ID: flow.DeriveID("test", rand.Text()),
		Type: pipeline.NotificationTypeTest, Time: now.UTC(), Client: "test", Title: "Test message of vokter-stream", Language: "en",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "test", Text: "this is a test, no page changed", Snippet: "Here stands what was added: this is a test, no page changed ...", Offset: 28},
			{Event: pipeline.Removed, Keyword: "test", Text: "the text before the test", Snippet: "Here stands what was removed: the text before the test ...", Offset: 30},
		},
	}
}
