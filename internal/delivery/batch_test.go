package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// batchSink is a Sink that takes batches and delivers nothing.
type batchSink [2]int

func (batchSink) Deliver(context.Context, pipeline.Notification) error { return nil }
func (b batchSink) Batch() (notifications, atOnce int)                 { return b[0], b[1] }

// recordingBatchSink is a recorder that takes batches.
type recordingBatchSink struct {
	recorder
	batchSink
}

func (b *recordingBatchSink) Deliver(ctx context.Context, n pipeline.Notification) error {
	return b.recorder.Deliver(ctx, n)
}

// startWithQueued starts a process with the sink called a and holds the attempt of the notification
// "first" until those with the IDs wait behind it; the document of each is its first letter.
func startWithQueued(t *testing.T, store *txtest.Store, s *recordingBatchSink, ids ...string) *poolFixture {
	t.Helper()
	release := make(chan struct{})
	do := s.do
	s.do = func(ctx context.Context, n pipeline.Notification) error {
		if n.ID == "first" {
			<-release
			return nil
		}
		if do == nil {
			return nil
		}
		return do(ctx, n)
	}
	r := newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}, Policy: Policy{Retry: []time.Duration{time.Second}}})
	for _, id := range append([]string{"first"}, ids...) {
		m, err := flow.Addressed{
			Receiver: pipeline.Receiver{Sink: "a"}, Document: id[:1], Subscription: id,
			Notification: pipeline.Notification{ID: id, URL: "https://example.com/"},
		}.Message()
		if err != nil {
			t.Fatal(err)
		}
		r.send(m)
	}
	synctest.Wait()
	close(release)
	return r
}

// wantAttempts fails t unless so many attempts were made, the sink got the notifications in this
// order, and none waits.
func (r *poolFixture) wantAttempts(s *recordingBatchSink, want uint64, got ...string) {
	r.t.Helper()
	if q := r.queue("a"); q.Attempt != want || q.Pending() != 0 {
		r.t.Errorf("%d attempts were made, and %d notifications wait; want %d and none", q.Attempt, q.Pending(), want)
	}
	if s.got() != fmt.Sprint(got) {
		r.t.Errorf("got %s, want %s", s.got(), got)
	}
}

// TestBatch: a notification that failed keeps its place, and an attempt after a failure has one
// notification.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recordingBatchSink{batchSink: batchSink{4, 1}}
		failed := false
		s.do = func(_ context.Context, n pipeline.Notification) error {
			if n.ID == "d" && !failed {
				failed = true
				return errors.New("500")
			}
			return nil
		}
		r := startWithQueued(t, txtest.New(), s, "b", "c", "d", "e", "f", "g", "h", "i", "j")
		time.Sleep(time.Minute)
		r.stop()
		r.wantAttempts(s, 5, "first", "b", "c", "d", "d", "e", "f", "g", "h", "i", "j")
		for id, want := range map[string]int{"c": 1, "d": 2, "e": 1} {
			if got, ok, err := Known(r.store.Begin().State("a"), id); got.Attempts != want || !ok || err != nil {
				t.Errorf("%s: %+v, %v, %v; want %d attempts", id, got, ok, err, want)
			}
		}
	})
}

// TestBatchBounds: an attempt ends after a while, whatever waits, and is of bounded size.
func TestBatchBounds(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &recordingBatchSink{batchSink: batchSink{9, 1}}
			s.do = func(context.Context, pipeline.Notification) error {
				time.Sleep(maxBatchTime * 2 / 3)
				return nil
			}
			r := startWithQueued(t, txtest.New(), s, "b", "c", "d", "e")
			time.Sleep(time.Minute)
			r.stop()
			r.wantAttempts(s, 3, "first", "b", "c", "d", "e")
		})
	})
	t.Run("number", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ids []string
			for i := range 3 + 7 + 15 + 31 + 63 + 2*maxBatch + 1 { // twice as many and one as the last one delivered
				ids = append(ids, fmt.Sprint(i))
			}
			s := &recordingBatchSink{batchSink: batchSink{1000, 1}}
			r := startWithQueued(t, txtest.New(), s, ids...)
			time.Sleep(time.Minute)
			r.stop()
			r.wantAttempts(s, 9, append([]string{"first"}, ids...)...)
		})
	})
	t.Run("bytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			half := strings.Repeat("x", maxBatchBytes*2/5)
			ids := []string{"b" + half, "c" + half, "d" + half, "e" + half}
			s := &recordingBatchSink{batchSink: batchSink{9, 1}}
			r := startWithQueued(t, txtest.New(), s, ids...)
			time.Sleep(time.Minute)
			r.stop()
			r.wantAttempts(s, 3, append([]string{"first"}, ids...)...)
		})
	})
}

// TestBatchAtOnce: only notifications of different documents are delivered concurrently.
func TestBatchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recordingBatchSink{batchSink: batchSink{9, 3}}
		var together [][]string
		var last time.Time
		s.do = func(_ context.Context, n pipeline.Notification) error {
			s.mu.Lock()
			if now := time.Now(); now.After(last) {
				together, last = append(together, nil), now
			}
			i := len(together) - 1
			together[i] = append(together[i], n.ID)
			slices.Sort(together[i])
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
			return nil
		}
		r := startWithQueued(t, txtest.New(), s, "b1", "c1", "c2", "b2", "d1", "e1", "f1")
		time.Sleep(time.Minute)
		r.stop()
		if got, want := fmt.Sprint(together), "[[b1 c1] [c2] [b2 d1 e1] [f1]]"; got != want {
			t.Errorf("at the same time came %s, want %s", got, want)
		}
		if q := r.queue("a"); q.Attempt != 3 {
			t.Errorf("%d attempts were made, want 3", q.Attempt)
		}
	})
}

// TestBatchForAnotherSink: an attempt that was made for a sink which takes batches delivers one
// notification where the sink was replaced by one that does not.
func TestBatchForAnotherSink(t *testing.T) {
	d := NewDelivery(Config{})
	a := Attempt{Notifications: []pipeline.Notification{{ID: "b"}, {ID: "c"}}, contexts: make([]attemptContext, 2)}
	s := &recorder{}
	if ends := d.pool.deliverBatch(t.Context(), s, a); len(ends) != 1 || s.got() != "[b]" {
		t.Errorf("%s was delivered, and %d endings are told; want one of b", s.got(), len(ends))
	}
}

// TestBatchBrokenOff: the next process knows what was delivered before the stop.
func TestBatchBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := txtest.New()
		s := &recordingBatchSink{batchSink: batchSink{9, 1}}
		s.do = func(ctx context.Context, n pipeline.Notification) error {
			if n.ID == "d" {
				return hangUntilDone(ctx, n)
			}
			return nil
		}
		r := startWithQueued(t, store, s, "b", "c", "d", "e")
		synctest.Wait()
		r.stop()
		s.do = nil
		r = newPoolFixture(t, store, Config{Sinks: map[string]pipeline.Sink{"a": s}})
		time.Sleep(time.Minute)
		r.stop()
		r.wantAttempts(s, 4, "first", "b", "c", "d", "d", "e") // one began after the end, and was never made
	})
}

// TestBatchWithdrawn: a batch has no notification of a cancelled subscription.
func TestBatchWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recordingBatchSink{batchSink: batchSink{9, 1}}
		failed := false
		s.do = func(context.Context, pipeline.Notification) error {
			if !failed {
				failed = true
				return errors.New("500")
			}
			return nil
		}
		r := startWithQueued(t, txtest.New(), s, "b", "c", "d", "e")
		synctest.Wait()
		r.send(withdrawal("a", "d"))
		time.Sleep(time.Minute)
		r.stop()
		r.wantAttempts(s, 5, "first", "b", "b", "c", "e")
	})
}

// TestBatchNotes: in a batch, a sink sees the note that it set for the notification before.
func TestBatchNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := txtest.New()
		s := &recordingBatchSink{batchSink: batchSink{9, 9}}
		var seen []string
		s.do = func(ctx context.Context, n pipeline.Notification) error {
			a := pipeline.AttemptFrom(ctx)
			s.mu.Lock()
			seen = append(seen, n.ID+" "+a.Document()+"="+a.Note())
			s.mu.Unlock()
			a.SetNote("note of " + n.ID)
			return nil
		}
		r := startWithQueued(t, store, s, "b1", "b2", "c1", "b3")
		synctest.Wait()
		r.stop()
		slices.Sort(seen)
		if got, want := fmt.Sprint(seen), "[b1 b= b2 b=note of b1 b3 b=note of b2 c1 c=]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for document, want := range map[string]string{"b": "note of b3", "c": "note of c1"} {
			if got, err := (state{store.Begin().State("a")}).noteOf(document, time.Time{}); got != want || err != nil {
				t.Errorf("the note of %s is %q, %v; want %q", document, got, err, want)
			}
		}
	})
}

// groupCommitTx is a transaction that is committed together with others: its OnCommit waits for that.
type groupCommitTx struct {
	*txtest.Tx
	onCommit *[]func()
}

func (s groupCommitTx) OnCommit(f func()) { *s.onCommit = append(*s.onCommit, f) }

// TestNotificationsOfOneCommit: a transport may commit several messages of a receiver
// together. The second must not take the attempt that the first begins for lost.
func TestNotificationsOfOneCommit(t *testing.T) {
	var made []Attempt
	store := txtest.New()
	d := NewDelivery(Config{Hand: func(a Attempt) { made = append(made, a) }, Now: func() time.Time { return time.Unix(1, 0) }})
	var later []func()
	for _, id := range []string{"a", "b", "c"} {
		m, err := flow.Addressed{
			Receiver: pipeline.Receiver{Sink: "s"}, Notification: pipeline.Notification{ID: id},
		}.Message()
		if err != nil {
			t.Fatal(err)
		}
		tx := groupCommitTx{store.Begin(), &later}
		if err := d.Process(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	for _, f := range later {
		f()
	}
	if len(made) != 1 || made[0].Notifications[0].ID != "a" {
		t.Errorf("got %d attempts, want one, of the first notification: %+v", len(made), made)
	}
}
