package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// retryOf is the message that tries now what waits for receiver about page.
func retryOf(t *testing.T, receiver, page string) flow.Message {
	t.Helper()
	b, err := json.Marshal(pipeline.RetryCommand{Page: page})
	if err != nil {
		t.Fatal(err)
	}
	return flow.Message{ID: "retry", Topic: flow.TopicNotifications, Key: receiver, Type: flow.TypeRetry, Body: b}
}

// TestRetry tries what waits at once, in order.
func TestRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		receiver, page, want string
	}{
		"all":              {"a", "", "[1 1 2 3]"},
		"of the page":      {"a", "https://example.com/", "[1 1 2 3]"},
		"of another page":  {"a", "https://example.org/", "[1]"},
		"another receiver": {"b", "", "[1]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sink := &recorder{do: func(context.Context, pipeline.Notification) error { return errors.New("503") }}
			r := newRig(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": sink}, Policy: Policy{Retry: []time.Duration{time.Hour}}})
			for _, id := range []string{"1", "2", "3"} {
				r.notify("a", id)
			}
			synctest.Wait()
			if n, err := Waiting(r.store.Begin().State("a"), tt.page); err != nil || (n != 3) != (tt.page == "https://example.org/") {
				t.Errorf("%s: %d wait, %v", name, n, err)
			}
			sink.mu.Lock()
			sink.do = nil
			sink.mu.Unlock()
			r.send(retryOf(t, tt.receiver, tt.page))
			synctest.Wait()
			if got := sink.got(); got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
			r.stop()
		})
	}
}

// TestRetryWhileOneIsInFlight makes another attempt at once, and one only: the one in flight may
// have begun before the receiver was mended.
func TestRetryWhileOneIsInFlight(t *testing.T) {
	s := &script{t: t, now: t0, p: Policy{Retry: []time.Duration{time.Hour}}}
	s.apply(enqueued{s.now})
	s.apply(hurried{s.now})
	s.result(0, errors.New("401"))
	if !s.q.InFlight {
		t.Fatal("no attempt follows the one that was in flight")
	}
	s.result(0, errors.New("401"))
	if got := s.q.Due.Sub(s.now); s.q.InFlight || got != time.Hour {
		t.Errorf("after the second failure: in flight %v, due in %s", s.q.InFlight, got)
	}
}
