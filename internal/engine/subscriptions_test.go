package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
)

var errClosed = errors.New("closed")

// newSubscriptions returns Subscriptions whose lanes nobody serves. Assigned gets each consumer for which
// the lanes are divided.
func newSubscriptions(assigned *[]Consumer) *Subscriptions {
	var mu sync.Mutex
	return &Subscriptions{
		Open: func(context.Context, Consumer) error { return nil },
		Assign: func(c Consumer) {
			mu.Lock()
			defer mu.Unlock()
			*assigned = append(*assigned, c)
		},
		Closed: errClosed,
	}
}

// TestSubscriptionsShareTheLanes of one consumer, and those of another do not matter.
func TestSubscriptionsShareTheLanes(t *testing.T) {
	var assigned []Consumer
	s := newSubscriptions(&assigned)
	c := Consumer{"g", "in"}
	first, second := s.Subscriber("g"), s.Subscriber("g")
	for _, b := range []message.Subscriber{first, second, s.Subscriber("h")} {
		if _, err := b.Subscribe(t.Context(), "in"); err != nil {
			t.Fatal(err)
		}
	}
	of := func(lane int, behind ...Consumer) (one *Subscription) {
		for _, one = range s.Of(c, behind, lane) {
		}
		return one
	}
	a, b := of(0), of(1)
	if a == nil || b == nil || a == b || of(2) != a || of(3) != b {
		t.Errorf("the lanes go to %p, %p, %p and %p", a, b, of(2), of(3))
	}
	if got := of(0, Consumer{"h", "in"}); got == nil || got == a {
		t.Error("a chain is not served by the subscriptions of its consumers")
	}
	if of(0, Consumer{"g", "other"}) != nil {
		t.Error("a chain is served though a consumer of it has no subscription")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open := <-a.Out; open {
		t.Error("the channel of a closed subscription is open")
	}
	if of(0) != b || of(1) != b {
		t.Error("the lanes of a closed subscription did not go to the other one")
	}
	if want := []Consumer{c, c, {"h", "in"}, c}; !slices.Equal(assigned, want) {
		t.Errorf("the lanes were divided for %v, want %v", assigned, want)
	}
	if _, err := first.Subscribe(t.Context(), "in"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: got %v, want %v", err, errClosed)
	}
	s.Close()
	if left := s.Consumers(); len(left) > 0 || of(0) != nil {
		t.Errorf("after Close %v have subscriptions", left)
	}
}

// TestSubscribeWhileClosing: a subscription that comes when Close has seen all that there are is refused.
func TestSubscribeWhileClosing(t *testing.T) {
	var assigned []Consumer
	s := newSubscriptions(&assigned)
	s.Open = func(context.Context, Consumer) error { s.Close(); return nil }
	if _, err := s.Subscriber("g").Subscribe(t.Context(), "in"); !errors.Is(err, errClosed) || len(assigned) > 0 {
		t.Errorf("got %v, want %v; the lanes were divided for %v", err, errClosed, assigned)
	}
}
