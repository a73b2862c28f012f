package vokter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// DeadLetters returns the dead letters that f selects, the oldest first. Those of messages that
// could not be handled come without their bodies and without headers that may hold passwords.
func (r *Router) DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error) {
	var found []flow.DeadLetter
	for d, err := range r.EachDeadLetter(ctx, f) {
		if err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	slices.SortStableFunc(found, func(a, b flow.DeadLetter) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(receiverID(a), receiverID(b)))
	})
	return found, nil
}

// EachDeadLetter yields what DeadLetters returns, in no order. It holds one of them in memory at a time. An
// error is the last element.
func (r *Router) EachDeadLetter(ctx context.Context, f flow.DeadFilter) iter.Seq2[flow.DeadLetter, error] {
	return func(yield func(flow.DeadLetter, error) bool) {
		if err := r.waitReadable(ctx); err != nil {
			yield(flow.DeadLetter{}, err)
			return
		}
		for l, err := range r.storedDeadLetters(ctx, f) {
			if !yield(l.Listed(), err) {
				return
			}
		}
	}
}

// receiverID returns the ID of the receiver of d, or an empty string if it has none.
func receiverID(d flow.DeadLetter) string {
	if d.Addressed == nil {
		return ""
	}
	return d.Addressed.Receiver.Sink
}

// Replay brings back the dead letters that f selects, and returns how many there are: notifications are queued for
// delivery again, and versions that could not be compared or matched are compared again if they are still stored. They
// keep their IDs. A receiver may get an ID that it already has,
// because a replay ignores the record of delivered IDs. When Replay returns, its commands are
// durable. An expired receiver is active again after its first successful delivery.
func (r *Router) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	if err := r.waitReadable(ctx); err != nil {
		return 0, err
	}
	if err := r.transport.Ready(); err != nil {
		return 0, err
	}
	f.Messages = false // others cannot be brought back
	body, err := json.Marshal(flow.ReplayCommand{Filter: f})
	if err != nil {
		return 0, err
	}
	n := 0
	var commands []flow.Message
	for l, err := range r.storedDeadLetters(ctx, f) {
		if err != nil {
			return 0, err
		}
		n++
		if len(commands) == 0 || commands[len(commands)-1].Key != l.key {
			commands = append(commands, flow.Message{
				ID: rand.Text(), Topic: flow.TopicDead, Key: l.key, Type: flow.TypeReplay, Time: r.cfg.Now(),
				Header: map[string]string{"content-type": "application/json"}, Body: body,
			})
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err := r.transport.Publish(ctx, commands...); err != nil {
		return 0, r.stoppedIfClosing(err)
	}
	return n, nil
}

// storedLetter is a dead letter with the key under which it is kept.
type storedLetter struct {
	key string
	flow.DeadLetter
}

// storedDeadLetters yields the dead letters that f selects, those of one key after the other. An error is the last
// element.
func (r *Router) storedDeadLetters(ctx context.Context, f flow.DeadFilter) iter.Seq2[storedLetter, error] {
	return func(yield func(storedLetter, error) bool) {
		for key, st := range r.transport.States(flow.GroupDead, "") {
			for l, err := range delivery.Letters(st) {
				if err == nil && ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					yield(storedLetter{}, r.stoppedIfClosing(err))
					return
				}
				if f.Selects(l.DeadLetter) && !yield(storedLetter{key, l.DeadLetter}, nil) {
					return
				}
			}
		}
	}
}

// Retry attempts the pending notifications of the receivers that f selects at once, instead of when
// their next attempt is due. Use it when a receiver works again. Each receiver gets its
// notifications in order, the oldest first. Retry returns these receivers and does not wait for the
// attempts. It fails where f.URL is not a URL, with a *flow.Refusal where f.Sink does not exist,
// and where the command cannot be stored.
func (r *Router) Retry(ctx context.Context, f flow.RetryFilter) ([]flow.Retried, error) {
	page := ""
	if f.URL != "" {
		var err error
		if page, err = pageurl.Canonical(f.URL); err != nil {
			return nil, err
		}
	}
	if err := r.waitReadable(ctx); err != nil {
		return nil, err
	}
	if err := r.transport.Ready(); err != nil {
		return nil, err
	}
	tried, err := r.receiversToRetry(f.Sink, page)
	if err != nil {
		return nil, r.stoppedIfClosing(err)
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
	return tried, r.stoppedIfClosing(err)
}

// receiversToRetry returns the receivers of a sink (of all sinks if it is empty) with a pending notification
// about page (about any page if it is empty), and those that other processes own.
func (r *Router) receiversToRetry(sink, page string) ([]flow.Retried, error) {
	if r.isPaused(sink) {
		return nil, &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("the sink %q is paused; resume it, and what waits is attempted", sink)}
	}
	tried := []flow.Retried{}
	for id, st := range r.transport.States(flow.GroupDelivery, "") {
		if !r.transport.Owns(id) || sink != "" && id != sink {
			continue
		}
		n, err := delivery.Waiting(st, page)
		if err != nil {
			return nil, err
		}
		if n > 0 && !r.isPaused(id) {
			tried = append(tried, flow.Retried{Sink: id, Waiting: n})
		}
	}
	for _, name := range r.sinkNames() {
		if !r.transport.Owns(name) && (sink == "" || sink == name) {
			tried = append(tried, flow.Retried{Sink: name, Elsewhere: true})
		}
	}
	if len(tried) == 0 && sink != "" && !r.liveConfig.Load().hasSink(sink) {
		return nil, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; %s", sink, nearest.Hint(sink, r.sinkNames()))}
	}
	return tried, nil
}
