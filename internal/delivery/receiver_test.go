package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// TestReceiverThatComesBack answers 500 three times and then takes what came.
func TestReceiverThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		s.do = func(context.Context, pipeline.Notification) error {
			if len(s.calls) <= 3 {
				return errors.New("500")
			}
			return nil
		}
		var delivered []string
		r := newPoolFixture(t, txtest.New(), Config{
			Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Retry: []time.Duration{300 * time.Millisecond}},
			Observe: func(o flow.Observation) { delivered = append(delivered, o.Kind+" "+o.Sink+" "+o.ID+o.Class) },
		})
		r.notify("a", "first")
		synctest.Wait()
		r.notify("a", "second")
		r.notify("a", "third")
		time.Sleep(10 * time.Second)
		r.stop()
		if got, want := s.got(), "[first first first first second third]"; got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(delivered), "[attempt a retry attempt a retry attempt a retry delivered a first delivered a second delivered a third]"; got != want {
			t.Errorf("observed %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(r.events()), "[a receiver_failing a receiver_recovered]"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
	})
}

func TestExpiredReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := true
		s := &recorder{do: func(context.Context, pipeline.Notification) error {
			if gone {
				return failure.Gone(errors.New("410"))
			}
			return nil
		}}
		store := txtest.New()
		r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Remember: time.Hour}})
		r.notify("a", "x")
		synctest.Wait()
		r.notify("a", "y")
		synctest.Wait()
		if got, want := fmt.Sprint(r.events()), "[a receiver_expired a dead_letter]"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if len(r.dead) != 2 || len(r.commands) != 2 {
			t.Fatalf("%d dead letters and %d commands, want 2 of each", len(r.dead), len(r.commands))
		}
		for _, m := range r.commands {
			var c flow.ExpireCommand
			if err := json.Unmarshal(m.Body, &c); err != nil {
				t.Fatal(err)
			}
			want := flow.ExpireCommand{URL: "https://example.com/", Receiver: "a", Reason: "the receiver is gone: 410"}
			if m.Topic != flow.TopicDocuments || m.Type != flow.TypeExpire || m.Key != want.URL || c != want {
				t.Errorf("got %+v: %+v, want %+v", m, c, want)
			}
		}
		q, err := Load(store.Begin().State("a"))
		if err != nil || !q.Expired() || q.ExpiredReason != "the receiver is gone: 410" {
			t.Errorf("got %+v, %v; want it expired", q, err)
		}
		if k, ok, err := Known(store.Begin().State("a"), "y"); err != nil || !ok || k.State != RecordDead || k.Reason != "the receiver is expired: 410" || k.Attempts != 1 {
			t.Errorf("got %+v, %v, %v; want it dead", k, ok, err)
		}

		// When all else is forgotten, and by another process, it is still expired; what is dead comes back
		// when asked for, and opens it.
		r.stop()
		time.Sleep(26 * time.Hour)
		newPoolFixture(t, store, Config{Policy: Policy{Remember: time.Hour}}).stop()
		if _, ok, err := Known(store.Begin().State("a"), "y"); err != nil || ok {
			t.Errorf("what was given up is still known: %v, %v", ok, err)
		}
		gone = false
		r = newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}})
		m := notification(t, "a", "", "y")
		m.Header[flow.HeaderReplay] = "1"
		r.send(m)
		synctest.Wait()
		r.stop()
		if got, want := fmt.Sprint(r.events()), "[a receiver_recovered]"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if h := r.health[0]; !h.Expired || h.Since.IsZero() {
			t.Errorf("got %+v, want that it was expired, and since when", h)
		}
		if got, want := s.got(), "[x y y]"; got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
	})
}

// TestReplayIsNotRepetition: a known notification is delivered again only by a replay.
func TestReplayIsNotRepetition(t *testing.T) {
	for _, tt := range []struct {
		do           error
		replay, want string
	}{
		{nil, "", "[x]"},
		{nil, "1", "[x x]"},
		{failure.Permanent(errors.New("no")), "", "[x]"},
		{failure.Permanent(errors.New("no")), "1", "[x x]"},
		{errors.New("pending"), "1", "[x]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &recorder{do: func(context.Context, pipeline.Notification) error { return tt.do }}
			r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
			r.notify("a", "x")
			synctest.Wait()
			m := notification(t, "a", "", "x")
			m.Header[flow.HeaderReplay] = tt.replay
			r.send(m)
			synctest.Wait()
			r.stop()
			if got := s.got(); got != tt.want {
				t.Errorf("%v, replay %q: attempts %s, want %s", tt.do, tt.replay, got, tt.want)
			}
		})
	}
}

func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{do: func(context.Context, pipeline.Notification) error { return errors.New("500") }}
		var dropped []string
		store := txtest.New()
		r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Remember: time.Hour}, Observe: func(o flow.Observation) {
			if o.Kind == flow.KindDropped {
				dropped = append(dropped, o.ID)
			}
		}})
		for i, sub := range []string{"old", "new", "old"} {
			r.send(notification(t, "a", sub, fmt.Sprint(i)))
		}
		synctest.Wait()
		r.send(withdrawal("a", "old"))
		synctest.Wait()
		if got, want := fmt.Sprint(dropped), "[0]"; got != want {
			t.Errorf("dropped %s at once, want %s", got, want)
		}
		r.send(withdrawal("a", "old")) // again, after a crash
		r.send(notification(t, "a", "old", "3"))
		synctest.Wait()
		if due, parked := r.d.Backlog(0); due+parked != 2 {
			t.Errorf("backlog %d, want 2", due+parked)
		}
		s.mu.Lock()
		s.do = nil
		s.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := s.got(), "[0 1]"; got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(dropped), "[0 3 2]"; got != want {
			t.Errorf("dropped %s, want %s", got, want)
		}
		if due, parked := r.d.Backlog(0); due+parked != 0 || !r.d.Idle(0) || len(r.dead) != 0 {
			t.Errorf("backlog %d, idle %v, %d dead; want 0, true, 0", due+parked, r.d.Idle(0), len(r.dead))
		}
		if k, ok, err := Known(store.Begin().State("a"), "2"); err != nil || !ok || k.State != RecordDropped {
			t.Errorf("got %+v, %v, %v; want it dropped", k, ok, err)
		}
		r.stop()
		after := func(d time.Duration) {
			time.Sleep(d)
			newPoolFixture(t, store, Config{Policy: Policy{Remember: time.Hour}}).stop()
		}
		after(keepLetters - time.Hour)
		if got := store.Names("a"); len(got) != 3 || got[1] != "queue" || got[2] != "x/old" || !strings.HasPrefix(got[0], nameWithdrawnAt) {
			t.Errorf("got %v kept, want a marker, for as long as a dead letter may come back", got)
		}
		after(25 * time.Hour)
		after(25 * time.Hour)
		if got := store.Names("a"); !slices.Equal(got, []string{"queue"}) {
			t.Errorf("got %v kept, want when something was delivered last", got)
		}
		after(keepResults)
		if keys := store.Keys(); len(keys) > 0 {
			t.Errorf("long after there is still %v", store.Names("a"))
		}
	})
}

// TestDamagedStateStopsTheRouter puts values there that cannot be read.
func TestDamagedStateStopsTheRouter(t *testing.T) {
	wake := flow.Message{Type: flow.TypeWake, Key: "a"}
	for name, m := range map[string]flow.Message{
		"queue":                  wake,
		"d/x":                    notification(t, "a", "", "x"),
		"p/00000000000000000000": wake,
	} {
		for _, value := range []string{"", "\x09{}", "\x01{", "\x02"} {
			store := txtest.New()
			tx := store.Begin()
			st := tx.State("a")
			if err := errors.Join(st.Set("queue", []byte("\x01"+`{"next":1}`)), st.Set(name, []byte(value))); err != nil {
				t.Fatal(err)
			}
			tx.Commit()
			err := store.Handle(t.Context(), NewDelivery(Config{Hand: func(Attempt) {}}), m)
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
				t.Errorf("%s %q: got %v, want an error that stops the Router", name, value, err)
			}
		}
	}
}

func TestRecord(t *testing.T) {
	for _, want := range []Record{
		{State: RecordPending},
		{State: RecordDelivered, Attempts: 1, Time: t0},
		{State: RecordDead, Attempts: 300, Reason: "not delivered: 500", Time: t0},
		{State: RecordDropped, Time: t0.Add(-100 * 365 * 24 * time.Hour)},
	} {
		b := want.encode()
		if got, err := decodeRecord(b); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		for i := range len(b) - len(want.Reason) {
			if _, err := decodeRecord(b[:i]); err == nil {
				t.Errorf("%+v: the first %d bytes are a record too", want, i)
			}
		}
	}
}

// TestMarkerOutlivesWhatNeedsIt: a marker is kept while a pending notification needs it.
func TestMarkerOutlivesWhatNeedsIt(t *testing.T) {
	s := state{txtest.New().Begin().State("a")}
	if err := s.markWithdrawn("old", withdrawnMarker{Next: 5}, t0); err != nil {
		t.Fatal(err)
	}
	for head, want := range []int{4: 0, 5: 1} {
		long := t0.Add(1000 * 24 * time.Hour)
		p, err := s.prune(long, long, uint64(head))
		if err != nil || p.Markers != want || p.OthersRemain != (want == 0) {
			t.Errorf("head %d: got %+v, %v; want %d forgotten", head, p, err, want)
		}
	}
}

// TestEventsOfAnotherLifeAreOthers: after a receiver was forgotten, its health events have new IDs.
func TestEventsOfAnotherLifeAreOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := true
		s := &recorder{}
		s.do = func(_ context.Context, n pipeline.Notification) error {
			if gone && n.ID == "x" {
				return failure.Gone(errors.New("410"))
			}
			return nil
		}
		store := txtest.New()
		ids := make(map[string]bool)
		for life := range 2 {
			r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}})
			for _, id := range []string{"x", "y"} {
				m := notification(t, "a", "", id)
				m.Header[flow.HeaderReplay] = "1"
				r.send(m)
				synctest.Wait()
			}
			for _, h := range r.health {
				ids[h.ID] = true
			}
			for _, m := range r.commands {
				ids[m.ID] = true
			}
			if got, want := len(ids), 4*(life+1); got != want {
				t.Errorf("life %d: %d events and commands in all, want %d: expired, dead, recovered, expire", life, got, want)
			}
			r.stop()
			for _, d := range []time.Duration{8 * 24 * time.Hour, 8 * 24 * time.Hour, keepResults} {
				time.Sleep(d)
				newPoolFixture(t, store, Config{}).stop()
			}
			if keys := store.Keys(); len(keys) > 0 {
				t.Fatalf("it is not forgotten: %v", store.Names("a"))
			}
		}
	})
}

// TestMarkersAreForgottenInBatches has more of them than one transaction forgets.
func TestMarkersAreForgottenInBatches(t *testing.T) {
	const n = pruneBatch + 7
	store := txtest.New()
	tx := store.Begin()
	s := state{tx.State("a")}
	if err := s.write(nameQueue, Queue{WithdrawnMarkers: n, PruneAt: t0}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := s.markWithdrawn(fmt.Sprint(i), withdrawnMarker{}, t0); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	now := t0.Add(keepLetters + time.Hour)
	d := NewDelivery(Config{Now: func() time.Time { return now }})
	for _, left := range []int{7, 0} {
		store.Writes()
		if err := store.Handle(t.Context(), d, flow.Message{Type: flow.TypeWake, Key: "a"}); err != nil {
			t.Fatal(err)
		}
		if got := store.Writes(); got > 2*pruneBatch+1 {
			t.Errorf("one transaction writes %d values, want %d at most", got, 2*pruneBatch+1)
		}
		q, err := Load(store.Begin().State("a"))
		if names := len(store.Names("a")); err != nil || q.WithdrawnMarkers != left || left > 0 && names != 2*left+1 || left == 0 && names != 0 {
			t.Errorf("got %+v, %v and %d names; want %d markers", q, err, names, left)
		}
		if left > 0 && q.PruneAt.Sub(now) != pruneMoreAfter {
			t.Errorf("the rest follows after %s, want %s", q.PruneAt.Sub(now), pruneMoreAfter)
		}
		now = now.Add(pruneMoreAfter)
	}
}
