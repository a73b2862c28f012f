package delivery

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestADigestOfAnExpiredReceiver(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", nil, 1))
	k.handle(k.attempts[0].Result(failure.Gone(fmt.Errorf("it moved"))))
	k.tick(0)
	digest := k.record("a").In
	if r := k.record("a"); r.State != RecordDead || digest == "" || !strings.Contains(r.Reason, "it moved") {
		t.Errorf("it is known as %+v", r)
	}
	// What comes later is tried once.
	k.handle(k.item("s", "bb", hourly(0), 1))
	k.attempts = nil
	k.tick(time.Hour)
	if len(k.attempts) != 1 {
		t.Fatal("it is not tried once")
	}
	k.handle(k.attempts[0].Result(fmt.Errorf("not there")))
	if r := k.record("bb"); r.State != RecordDead || r.In == digest || !strings.Contains(r.Reason, "not there") {
		t.Errorf("it is known as %+v", r)
	}
	k.attempts = nil
	// The dead letter holds all of it, and comes back as it was, at once.
	dead := newDeadFixture(t)
	dead.now = k.now
	for _, m := range k.store.Take() {
		if m.Topic == flow.TopicDead {
			dead.handle(m)
		}
	}
	back := dead.handle(flow.Message{ID: "replay", Topic: flow.TopicDead, Key: "r", Type: flow.TypeReplay, Body: []byte("{}")})
	for _, m := range dead.store.Due(dead.now) {
		back = append(back, dead.handle(m)...)
	}
	for _, m := range back {
		k.handle(m)
	}
	k.handle(k.attempts[0].Result(nil)) // of the other notification
	if len(k.attempts) != 2 || k.attempts[1].Notifications[0].ID != digest || itemsOf(k.attempts[1].Notifications[0]) != "[a]" {
		t.Fatalf("tried %+v", k.attempts)
	}
	k.handle(k.attempts[1].Result(nil))
	if r := k.record("a"); r.State != RecordDelivered || r.In != digest || !r.Time.Equal(k.now) {
		t.Errorf("it is known as %+v", r)
	}
}

// TestDigestsOfAnExpiredReceiverInBatches: however many there are, and however large, one
// transaction gives up no more than another.
func TestDigestsOfAnExpiredReceiverInBatches(t *testing.T) {
	for name, c := range map[string]struct{ windows, diffs int }{"many": {3 * flushBatch, 1}, "large": {40, 2000}} {
		t.Run(name, func(t *testing.T) {
			k := newDeliveryFixture(t)
			for i := range c.windows {
				k.handle(k.item(fmt.Sprint("s", i), fmt.Sprint("a", i), hourly(0), c.diffs))
			}
			k.handle(k.item("other", "o", nil, 1))
			k.handle(k.attempts[0].Result(failure.Gone(fmt.Errorf("it moved"))))
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
			if q, err := Load(k.store.Begin().State("r")); err != nil || q.Pending() != 0 || q.Windows != (Windows{}) || len(k.attempts) != 1 {
				t.Errorf("got %+v, %v after %d attempts; want nothing left, after one", q, err, len(k.attempts))
			}
		})
	}
}

// TestDigestsOfAReceiverThatIsBack: a notification for an expired receiver is tried before its
// digests are given up. If it is delivered, they are kept.
func TestDigestsOfAReceiverThatIsBack(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{{nil, "[a]"}, {fmt.Errorf("not there"), ""}} {
		k := newDeliveryFixture(t)
		k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", nil, 1))
		k.handle(k.attempts[0].Result(failure.Gone(fmt.Errorf("it moved"))), k.item("other", "p", nil, 1))
		k.tick(0)
		if len(k.attempts) != 2 || k.record("a").State != RecordCollected {
			t.Fatalf("%d attempts, and the item is %+v; want 2, and that it waits", len(k.attempts), k.record("a"))
		}
		last := k.attempts[1]
		k.attempts = nil
		k.handle(last.Result(c.err))
		k.tick(0)
		if r := k.record("a"); (r.State == RecordDead) != (c.err != nil) {
			t.Errorf("%v: the item is %+v", c.err, r)
		}
		k.tick(time.Hour)
		if got := k.takeDelivered(); got != c.want {
			t.Errorf("%v: took %q, want %q", c.err, got, c.want)
		}
	}
}

// recordingPoster keeps the messages that are posted.
type recordingPoster struct{ ms []flow.Message }

func (p *recordingPoster) Post(_ context.Context, m flow.Message) error {
	p.ms = append(p.ms, m)
	return nil
}

// TestEndDigests: all at once, also one whose first item is committed only afterwards.
func TestEndDigests(t *testing.T) {
	k, lane := newDeliveryFixture(t), &recordingPoster{}
	k.d.cfg.Poster = lane
	end := func() {
		t.Helper()
		if err := k.d.EndDigests(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m := k.item("s", "a", hourly(0), 1)
	tx := k.store.Begin()
	if err := k.d.Process(t.Context(), tx, m); err != nil {
		t.Fatal(err)
	}
	end()
	if len(lane.ms) != 0 {
		t.Fatalf("posted %v for what nobody knows of", lane.ms)
	}
	tx.Commit()
	end()
	k.handle(lane.ms...)
	k.handle(k.item("s", "bb", hourly(0), 1))
	if got, want := k.takeDelivered(), "[a] | [bb]"; got != want {
		t.Errorf("took %s, want %s", got, want)
	}
	lane.ms = nil
	if end(); len(lane.ms) != 0 {
		t.Errorf("posted %v for nothing", lane.ms)
	}
}

// scanCountingTx counts the scans of the states of a transaction. Some transports
// read all that a scan could yield before they yield the first.
type scanCountingTx struct {
	flow.Tx
	n *int
}

func (s scanCountingTx) State(key string) flow.State { return scanCountingState{s.Tx.State(key), s.n} }

type scanCountingState struct {
	flow.State
	n *int
}

func (s scanCountingState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	*s.n++
	return s.State.Scan(prefix)
}

// countScans handles m, and returns how many scans that took.
func countScans(t *testing.T, k *deliveryFixture, m flow.Message) (n int) {
	t.Helper()
	tx := k.store.Begin()
	if err := k.d.Process(t.Context(), scanCountingTx{tx, &n}, m); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	return n
}

// TestScansOfWindows: the cost of a message does not grow with the number of open digests, except
// for a few scans when some of them end.
func TestScansOfWindows(t *testing.T) {
	const open = 3 * flushBatch
	k := newDeliveryFixture(t)
	most := 0
	handle := func(ms ...flow.Message) {
		t.Helper()
		for _, m := range ms {
			most = max(most, countScans(t, k, m))
		}
	}
	check := func(what string, want int) {
		t.Helper()
		if most > want {
			t.Errorf("%s: %d scans for a message, want at most %d", what, most, want)
		}
		most = 0
	}
	daily := &pipeline.Digest{Cron: "0 9 * * *"}
	for i := range open {
		handle(k.item(fmt.Sprint("sub", i), fmt.Sprint("a", i), daily, 1))
		handle(k.item(fmt.Sprint("sub", i), fmt.Sprint("b", i), daily, 1))
	}
	check("collecting", 0)
	handle(withdrawal("r", "sub0"))
	check("withdrawing", 1)
	k.now = k.now.Add(24 * time.Hour)
	for ms := k.store.Due(k.now); len(ms) > 0; ms = k.store.Due(k.now) {
		handle(ms...)
	}
	check("ending some", 2)
	q, err := state{k.store.Begin().State("r")}.loadQueue()
	if err != nil {
		t.Fatal(err)
	}
	if q.Windows != (Windows{}) || q.Pending() != open-1 {
		t.Errorf("the queue is %+v", q)
	}

	for i := range open {
		handle(k.item(fmt.Sprint("sub", i), fmt.Sprint("c", i), daily, 1))
	}
	k.d.endingDigests.Store(true)
	handle(flow.Message{ID: "wake", Key: "r", Type: flow.TypeWake})
	check("ending all", 2)
}

// TestScansOfNotes: a large prune scans the notes once, at its end.
func TestScansOfNotes(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.item("s", "last", nil, 1))
	k.handle(k.attempts[0].Result(nil))
	tx := k.store.Begin()
	st := state{tx.State("r")}
	for i := range 2*pruneBatch + 1 {
		if err := st.setEnded(fmt.Sprint("n", i), Record{State: RecordDelivered, Time: k.now}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.setNote("doc", "text", k.now); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	var scanned []int
	k.now = k.now.Add(defaultRemember + time.Hour)
	for ms := k.store.Due(k.now); len(ms) > 0; ms = k.store.Due(k.now) {
		for _, m := range ms {
			scanned = append(scanned, countScans(t, k, m))
		}
		k.now = k.now.Add(pruneMoreAfter)
	}
	if want := []int{2, 2, 3}; !slices.Equal(scanned, want) {
		t.Errorf("%v scans, want %v: IDs and markers each time, and notes in the end", scanned, want)
	}
	if names := k.store.Names("r"); !slices.Equal(names, []string{nameQueue}) {
		t.Errorf("there is still %v", names)
	}
}
