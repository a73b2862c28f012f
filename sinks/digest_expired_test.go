package sinks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

func TestADigestOfAnExpiredReceiver(t *testing.T) {
	k := newDesk(t)
	k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", nil, 1))
	k.handle(k.tried[0].Result(pipeline.Gone(fmt.Errorf("it moved"))))
	k.tick(0)
	digest := k.known("a").In
	if r := k.known("a"); r.State != RecordDead || digest == "" || !strings.Contains(r.Reason, "it moved") {
		t.Errorf("it is known as %+v", r)
	}
	// What comes later is tried once.
	k.handle(k.item("s", "bb", hourly(0), 1))
	k.tried = nil
	k.tick(time.Hour)
	if len(k.tried) != 1 {
		t.Fatal("it is not tried once")
	}
	k.handle(k.tried[0].Result(fmt.Errorf("not there")))
	if r := k.known("bb"); r.State != RecordDead || r.In == digest || !strings.Contains(r.Reason, "not there") {
		t.Errorf("it is known as %+v", r)
	}
	k.tried = nil
	// The dead letter holds all of it, and comes back as it was, at once.
	dead := deadWorld{txtest.New()}
	for _, m := range k.store.Take() {
		if m.Topic == flow.TopicDead {
			if err := dead.store.Handle(t.Context(), NewDeadLetters(DeadConfig{Now: func() time.Time { return k.now }}), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range dead.replay(&world{t: t, r: rand.New(rand.NewPCG(1, 1)), now: k.now}, "r") {
		k.handle(m)
	}
	k.handle(k.tried[0].Result(nil)) // of the other notification
	if len(k.tried) != 2 || k.tried[1].Notifications[0].ID != digest || itemsOf(k.tried[1].Notifications[0]) != "[a]" {
		t.Fatalf("tried %+v", k.tried)
	}
	k.handle(k.tried[1].Result(nil))
	if r := k.known("a"); r.State != RecordDelivered || r.In != digest {
		t.Errorf("it is known as %+v", r)
	}
}

// TestDigestsOfAnExpiredReceiverInBatches: however many there are, and however large, one
// transaction gives up no more than another.
func TestDigestsOfAnExpiredReceiverInBatches(t *testing.T) {
	for name, c := range map[string]struct{ windows, diffs int }{"many": {3 * flushBatch, 1}, "large": {40, 2000}} {
		t.Run(name, func(t *testing.T) {
			k := newDesk(t)
			for i := range c.windows {
				k.handle(k.item(fmt.Sprint("s", i), fmt.Sprint("a", i), hourly(0), c.diffs))
			}
			k.handle(k.item("other", "o", nil, 1))
			k.handle(k.tried[0].Result(pipeline.Gone(fmt.Errorf("it moved"))))
			letters, most, largest := 0, 0, 0
			for range 100 {
				size, before := 0, letters
				for _, m := range k.store.Take() {
					if m.Topic == flow.TopicDead {
						letters++
						size += len(m.Body)
					}
				}
				largest, most = max(largest, size), max(most, letters-before)
				k.tick(0)
			}
			if letters != c.windows+1 || most > dropBatch || largest > 2*flushBytes {
				t.Errorf("%d dead letters, at most %d of %d bytes at once; want %d, %d of %d", letters, most, largest, c.windows+1, dropBatch, 2*flushBytes)
			}
			if q, err := Load(k.store.Begin().State("r")); err != nil || q.Pending() != 0 || q.Windows != (Windows{}) || len(k.tried) != 1 {
				t.Errorf("got %+v, %v after %d attempts; want nothing left, after one", q, err, len(k.tried))
			}
		})
	}
}

// TestDigestsOfAReceiverThatIsBack: what comes for an expired receiver before its digests are
// given up is tried before, and saves them if it arrives.
func TestDigestsOfAReceiverThatIsBack(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{{nil, "[a]"}, {fmt.Errorf("not there"), ""}} {
		k := newDesk(t)
		k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", nil, 1))
		k.handle(k.tried[0].Result(pipeline.Gone(fmt.Errorf("it moved"))), k.item("other", "p", nil, 1))
		k.tick(0)
		if len(k.tried) != 2 || k.known("a").State != RecordCollected {
			t.Fatalf("%d attempts, and the item is %+v; want 2, and that it waits", len(k.tried), k.known("a"))
		}
		last := k.tried[1]
		k.tried = nil
		k.handle(last.Result(c.err))
		k.tick(0)
		if r := k.known("a"); (r.State == RecordDead) != (c.err != nil) {
			t.Errorf("%v: the item is %+v", c.err, r)
		}
		k.tick(time.Hour)
		if got := k.took(); got != c.want {
			t.Errorf("%v: took %q, want %q", c.err, got, c.want)
		}
	}
}
