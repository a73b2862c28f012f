package vokter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// RetryFilter selects what Retry tries. Empty fields select all.
type RetryFilter struct {
	Sink string `json:"sink,omitempty"`
	// URL selects the receivers for which something about this page waits.
	URL string `json:"url,omitempty"`
}

// Retried is a receiver for which what waits is tried.
type Retried struct {
	Sink   string `json:"sink"`
	Target string `json:"target,omitempty"`
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
		if page, err = pipeline.CanonicalURL(f.URL); err != nil {
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
	body, err := json.Marshal(pipeline.RetryCommand{Page: page})
	if err != nil {
		return nil, err
	}
	commands := make([]flow.Message, 0, len(tried))
	for _, t := range tried {
		commands = append(commands, flow.Message{
			ID: rand.Text(), Topic: flow.TopicNotifications, Key: pipeline.Receiver{Sink: t.Sink, Target: t.Target}.ID(),
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
		to := sinks.ReceiverOf(id)
		if !r.transport.Owns(id) || sink != "" && to.Sink != sink {
			continue
		}
		n, err := sinks.Waiting(st, page)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			tried = append(tried, Retried{Sink: to.Sink, Target: to.Target, Waiting: n})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.live.Load().Sinks)) {
		if to := (pipeline.Receiver{Sink: name}); !r.transport.Owns(to.ID()) && (sink == "" || sink == name) {
			tried = append(tried, Retried{Sink: name, Elsewhere: true})
		}
	}
	if len(tried) == 0 && sink != "" && r.live.Load().Sinks[sink] == nil {
		names := slices.Sorted(maps.Keys(r.live.Load().Sinks))
		return nil, &pipeline.Refusal{Code: pipeline.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; there are: %s", sink, strings.Join(names, ", "))}
	}
	return tried, nil
}
