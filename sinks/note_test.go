package sinks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/txtest"
)

// TestNotes: what a sink notes is there for the next attempt, of the same document alone,
// after a restart too, also where the attempt failed, and is forgotten in time.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		s := &recorder{}
		s.do = func(ctx context.Context, n pipeline.Notification) error {
			a := pipeline.AttemptFrom(ctx)
			seen = append(seen, a.Document()+"="+a.Note())
			a.SetNote("root of " + n.ID)
			a.SetNote(string(make([]byte, pipeline.MaxNote+1)))
			if len(seen) == 1 {
				return errors.New("500")
			}
			return nil
		}
		store := txtest.New()
		cfg := Config{Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Retry: []time.Duration{time.Second}, Remember: 48 * time.Hour}}
		r := newRig(t, store, cfg)
		r.notify("a", "first")
		time.Sleep(10 * time.Second)
		r.notify("a", "second")
		time.Sleep(10 * time.Second)
		r.stop()
		r = newRig(t, store, cfg)
		r.notify("a", "third")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := fmt.Sprint(seen), "[doc= doc=root of first doc=root of first doc=root of second]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		time.Sleep(5 * 24 * time.Hour)
		if b, ok, err := store.Begin().State("a").Get(nameNote + "doc"); ok || err != nil {
			t.Errorf("after five days the note is %q, %v", b, err)
		}
		r.stop()
	})
}

// TestDegraded: notifications that arrive other than was wanted are told, once a day.
func TestDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{do: func(ctx context.Context, _ pipeline.Notification) error {
			pipeline.AttemptFrom(ctx).Degraded("the template failed")
			return nil
		}}
		r := newRig(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
		for day := range 2 {
			for i := range 3 {
				r.notify("a", fmt.Sprint(day, i))
				time.Sleep(time.Second)
			}
			time.Sleep(24 * time.Hour)
		}
		r.stop()
		if got, want := fmt.Sprint(r.events()), "[a receiver_degraded a receiver_degraded]"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if h := r.health[0]; h.Reason != "the template failed" {
			t.Errorf("the reason is %q", h.Reason)
		}
	})
}
