package sinks

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// scans counts how often the states of a transaction are looked through. Some transports
// read all that a scan could yield before they yield the first.
type scans struct {
	flow.Tx
	n *int
}

func (s scans) State(key string) flow.State { return scanned{s.Tx.State(key), s.n} }

type scanned struct {
	flow.State
	n *int
}

func (s scanned) Scan(prefix string) iter.Seq2[string, flow.Value] {
	*s.n++
	return s.State.Scan(prefix)
}

// scansOf has m handled, and returns how many scans that took.
func scansOf(t *testing.T, k *desk, m flow.Message) (n int) {
	t.Helper()
	tx := k.store.Begin()
	if err := k.d.Process(t.Context(), scans{tx, &n}, m); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	return n
}

// TestScansOfWindows: what one message costs does not grow with the digests that are open,
// but for a few looks through them where some of them end.
func TestScansOfWindows(t *testing.T) {
	const open = 3 * flushBatch
	k := newDesk(t)
	most := 0
	handle := func(ms ...flow.Message) {
		t.Helper()
		for _, m := range ms {
			most = max(most, scansOf(t, k, m))
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
	q, err := state{k.store.Begin().State("r")}.queue()
	if err != nil {
		t.Fatal(err)
	}
	if q.Windows != (Windows{}) || q.Pending() != open-1 {
		t.Errorf("the queue is %+v", q)
	}

	for i := range open {
		handle(k.item(fmt.Sprint("sub", i), fmt.Sprint("c", i), daily, 1))
	}
	k.d.ending.Store(true)
	handle(flow.Message{ID: "wake", Key: "r", Type: flow.TypeWake})
	check("ending all", 2)
}

// TestScansOfNotes: notes are looked through once, when all else is forgotten, and not again
// for each part of that.
func TestScansOfNotes(t *testing.T) {
	k := newDesk(t)
	k.handle(k.item("s", "last", nil, 1))
	k.handle(k.tried[0].Result(nil))
	tx := k.store.Begin()
	st := state{tx.State("r")}
	for i := range 2*pruneBatch + 1 {
		if err := st.end(fmt.Sprint("n", i), Record{State: RecordDelivered, Time: k.now}); err != nil {
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
			scanned = append(scanned, scansOf(t, k, m))
		}
		k.now = k.now.Add(pruneAgain)
	}
	if want := []int{2, 2, 3}; !slices.Equal(scanned, want) {
		t.Errorf("%v scans, want %v: IDs and markers each time, and notes in the end", scanned, want)
	}
	if names := k.store.Names("r"); !slices.Equal(names, []string{nameQueue}) {
		t.Errorf("there is still %v", names)
	}
}
