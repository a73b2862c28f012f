package match

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// handle handles m and returns who is notified of what: "change/client".
func (h stageTest) handle(m flow.Message) []string {
	h.t.Helper()
	if err := h.Handle(context.Background(), h.p, m); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, m := range h.Take() {
		if m.Type == flow.TypeTold {
			continue
		}
		var a flow.Addressed
		if err := json.Unmarshal(m.Body, &a); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, a.Notification.Change+"/"+a.Notification.Client)
	}
	return out
}

// TestBacklog matches far more subscriptions than one transaction notifies, while further
// messages of the page arrive and the process restarts.
func TestBacklog(t *testing.T) {
	const batch = 10
	const n = 2*batch + 3
	h := newStageTest(t, Config{Batch: batch})
	for i := range n {
		s := newStamped(i, i+1, 0, flow.Forever, "argus")
		s.Subscription.Sinks = []string{"hook"}
		h.applyStamps(s)
	}
	got := h.handle(newMessage(flow.TypeChange, newChange(1, "argus")))
	if len(got) != batch || len(h.stateNames(historyName)) != 0 {
		t.Fatalf("the first transaction has %d notifications and the history %q", len(got), h.stateNames(historyName))
	}
	// The last client cancels and another one is new, the same process sees the next change, and
	// the page ends.
	cancelled := endStamped(newStamped(n-1, n, 0, 0, "argus"), n+1, 0)
	cancelled.End = flow.EndCancelled
	late := newStamped(n, n+2, 1, flow.Forever, "argus")
	late.Subscription.Sinks = []string{"hook"}
	h.applyStamps(cancelled, late)
	for _, m := range []flow.Message{
		newMessage(flow.TypeChange, newChange(2, "argus")),
		newMessage(flow.TypeEnded, flow.Ended{Page: page, Incarnation: "inc"}),
	} {
		if got := h.handle(m); len(got) != 0 {
			t.Fatalf("%s is handled before those in front of it: %d notifications", m.Type, len(got))
		}
	}
	for turns := 0; len(h.stateNames(backlogName)) > 0; turns++ {
		if w, ok := h.Wake(page); !ok || w.At.IsZero() || turns > 10 {
			t.Fatalf("after %d turns %q is left, and the wake is %v", turns, h.stateNames(backlogName), w)
		}
		if turns%2 == 0 {
			h.p = New(Config{Batch: batch})
		}
		more := h.handle(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})
		if len(more) > batch {
			t.Errorf("a transaction has %d notifications", len(more))
		}
		got = append(got, more...)
	}
	var want []string
	for version, clients := range []int{n - 1, n} { // all but the cancelled one, and with the late one
		for i := range clients {
			if i == n-1 {
				i = n
			}
			want = append(want, fmt.Sprintf("change%d/c%d", version+1, i))
		}
	}
	if slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(a[:7], b[:7]) }) == false {
		t.Error("a notification of the second change is before one of the first")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d notifications, want %d", len(got), len(want))
	}
	if left := h.Names(page); len(left) != 0 {
		t.Errorf("%q is left after the end", left)
	}
}

// TestBacklogKeepsClients has a page to which pages of many clients link: what one of them is
// notified of stays in one transaction, in which repeats are found.
func TestBacklogKeepsClients(t *testing.T) {
	const clients = 23
	h := newStageTest(t, Config{Batch: 10})
	stamp := 0
	for i := range clients {
		for k := range 3 { // one that the client made, and two by links
			stamp++
			s := newStamped(stamp, stamp, 0, flow.Forever, "argus")
			s.Subscription.Client, s.Subscription.Sinks = fmt.Sprint("c", i), []string{"hook"}
			if k != 1 {
				s.Followed = &flow.Followed{ID: fmt.Sprint(k)}
			}
			h.applyStamps(s)
		}
	}
	got := h.handle(newMessage(flow.TypeChange, newChange(1, "argus")))
	for len(h.stateNames(backlogName)) > 0 {
		got = append(got, h.handle(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})...)
	}
	if len(got) != clients {
		t.Errorf("%d clients get %d notifications", clients, len(got))
	}
}

// TestBacklogKeepsItsOrder: a page links to this one when some clients were notified of a change. The others
// get theirs, and nobody gets it twice.
func TestBacklogKeepsItsOrder(t *testing.T) {
	const n = 23
	h := newStageTest(t, Config{Batch: 10})
	for i := range n {
		s := newStamped(i, i+1, 0, flow.Forever, "argus")
		s.Subscription.Sinks = []string{"hook"}
		h.applyStamps(s)
	}
	got := h.handle(newMessage(flow.TypeChange, newChange(1, "argus")))
	late := newStamped(n, n+1, 1, flow.Forever, "argus")
	late.Subscription.Sinks, late.Followed = []string{"hook"}, &flow.Followed{}
	h.applyStamps(late)
	for len(h.stateNames(backlogName)) > 0 {
		got = append(got, h.handle(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})...)
	}
	slices.Sort(got)
	if all := len(got); all != n || len(slices.Compact(got)) != n {
		t.Errorf("%d notifications of %d clients", all, n)
	}
}

// TestTableAdvances compares a Processor that keeps its tables with one that reads them before
// each change, while subscriptions come, change and end.
func TestTableAdvances(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	kept, fresh := newStageTest(t, Config{}), newStageTest(t, Config{})
	words := strings.Fields("argus zeus hera io hermes")
	live := map[int]flow.Stamped{}
	stamp, version := 0, 0
	for range 600 {
		for range r.IntN(4) {
			stamp++
			i := r.IntN(40)
			s, ok := live[i]
			switch {
			case !ok:
				s = newStamped(i, stamp, version, flow.Forever, words[r.IntN(len(words))])
				live[i] = s
			case r.IntN(3) == 0: // another keyword
				s.Stamp, s.Subscription.Keywords = uint64(stamp), []string{words[r.IntN(len(words))]}
				live[i] = s
			default:
				s = endStamped(s, stamp, uint64(version))
				if r.IntN(2) == 0 {
					s.End = flow.EndCancelled
				}
				delete(live, i)
			}
			kept.applyStamps(s)
			fresh.applyStamps(s)
		}
		version++
		c := newChange(version, words[r.IntN(len(words))])
		if r.IntN(10) == 0 {
			c.Language = "de"
		}
		fresh.evictTables()
		if got, want := kept.handle(newMessage(flow.TypeChange, c)), fresh.handle(newMessage(flow.TypeChange, c)); !slices.Equal(got, want) {
			t.Fatalf("version %d: told %q, want %q", version, got, want)
		}
	}
}
