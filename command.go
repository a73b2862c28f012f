package vokter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
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
	page, err := pipeline.CanonicalURL(url)
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
