package delivery

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// deadFixture is a DeadLetters over a Store, with a clock.
type deadFixture struct {
	t     *testing.T
	store *txtest.Store
	d     *DeadLetters
	now   time.Time
}

func newDeadFixture(t *testing.T) *deadFixture {
	m := &deadFixture{t: t, store: txtest.New(), now: t0}
	m.d = NewDeadLetters(DeadConfig{Now: func() time.Time { return m.now }})
	return m
}

// handle processes msg and returns the emitted messages.
func (m *deadFixture) handle(msg flow.Message) []flow.Message {
	m.t.Helper()
	if err := m.store.Handle(m.t.Context(), m.d, msg); err != nil {
		m.t.Fatal(err)
	}
	return m.store.Take()
}

// letter gives up the notification id.
func (m *deadFixture) letter(id, client, url string) flow.Message {
	a := flow.Addressed{Receiver: pipeline.Receiver{Sink: "a"}, Notification: pipeline.Notification{ID: id, Client: client, URL: url}}
	return flow.DeadLetter{Reason: "500", Time: m.now, Attempts: 3, Addressed: &a}.Message(id, "a", url)
}

func (m *deadFixture) ids() []string {
	m.t.Helper()
	var ids []string
	for l, err := range Letters(m.store.Begin().State("a")) {
		if err != nil {
			m.t.Fatal(err)
		}
		ids = append(ids, l.Addressed.Notification.ID)
	}
	if n, err := CountLetters(m.store.Begin().State("a")); err != nil || n != len(ids) {
		m.t.Errorf("the count is %d, %v; want %d", n, err, len(ids))
	}
	return ids
}

func replayAll(filter string) flow.Message {
	return flow.Message{ID: "r", Topic: flow.TopicDead, Key: "a", Type: flow.TypeReplay, Body: []byte(`{"filter":` + filter + `}`)}
}

// replay carries out a command and returns the replayed notifications.
func (m *deadFixture) replay(filter string) (ids []string, transactions int) {
	m.t.Helper()
	take := func(ms []flow.Message) {
		transactions++
		for _, n := range ms {
			if n.Topic != flow.TopicNotifications || n.Key != "a" || n.Header[flow.HeaderReplay] != "1" {
				m.t.Errorf("got %+v, want a notification that is delivered again", n)
			}
			ids = append(ids, n.ID)
		}
	}
	take(m.handle(replayAll(filter)))
	for {
		wakes := m.store.Start(m.now)
		if len(wakes) == 0 {
			return ids, transactions
		}
		for _, w := range wakes {
			take(m.handle(w))
		}
	}
}

func TestLettersAreKeptInOrder(t *testing.T) {
	m := newDeadFixture(t)
	for _, id := range []string{"z", "y", "x", "y"} {
		if out := m.handle(m.letter(id, "", "")); len(out) > 0 {
			t.Errorf("%s: got %v, want nothing: delivery tells of it", id, out)
		}
	}
	if got, want := m.ids(), []string{"z", "x", "y"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	m.now = t0.Add(keepLetters)
	if wakes := m.store.Due(m.now.Add(-time.Second)); len(wakes) > 0 {
		t.Errorf("woken before anything is old: %v", wakes)
	}
	for range 2 {
		for _, w := range m.store.Due(m.now) {
			m.handle(w)
		}
		m.now = m.now.Add(time.Second)
	}
	if keys := m.store.Keys(); len(keys) > 0 {
		t.Errorf("after 90 days there is still %v", m.store.Names("a"))
	}
}

func TestReplaySelects(t *testing.T) {
	later := t0.Add(time.Hour).Format(time.RFC3339)
	for filter, want := range map[string][]string{
		`{}`:                                   {"1", "2", "3"},
		`{"client":"c"}`:                       {"1", "3"},
		`{"url":"HTTPS://example.com"}`:        {"1", "2"},
		`{"sink":"a","since":"` + later + `"}`: {"3"},
		`{"sink":"b"}`:                         nil,
	} {
		m := newDeadFixture(t)
		m.handle(m.letter("1", "c", "https://example.com/"))
		m.handle(m.letter("2", "d", "https://example.com/"))
		m.now = t0.Add(time.Hour)
		m.handle(m.letter("3", "c", "https://example.com/other"))
		got, _ := m.replay(filter)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", filter, got, want)
		}
		left := m.ids()
		if len(left)+len(got) != 3 || slices.ContainsFunc(left, func(id string) bool { return slices.Contains(got, id) }) {
			t.Errorf("%s: %v are left, want all others", filter, left)
		}
	}
}

func TestReplayInBatches(t *testing.T) {
	m := newDeadFixture(t)
	var want []string
	for i := range 2*replayBatch + 7 {
		want = append(want, fmt.Sprint(i))
		m.handle(m.letter(fmt.Sprint(i), "", ""))
	}
	// What dies while the command is carried out waits for another one.
	out := m.handle(replayAll("{}"))
	m.handle(m.letter("late", "", ""))
	got, transactions := m.replay(`{"sink":"nobody"}`)
	if len(out) != 0 || !slices.Equal(got, want) || transactions < 4 {
		t.Errorf("%d came back in %d transactions, want %d in 4 and more", len(got), transactions, len(want))
	}
	if got, want := m.ids(), []string{"late"}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	for _, want := range [][]string{{"late"}, nil} {
		if got, _ := m.replay("{}"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestLetterOfAMessage(t *testing.T) {
	m := newDeadFixture(t)
	d := flow.DeadLetter{Reason: "panic", Time: t0, Attempts: 1, Group: "match", Topic: "changes", Body: []byte("{")}
	msg := d.Message("id", "a", "https://example.com/")
	out := m.handle(msg)
	if len(out) != 1 || out[0].Topic != flow.TopicHealth {
		t.Fatalf("got %v, want a health event", out)
	}
	if h, err := flow.HealthFrom(out[0]); err != nil || h.Event != pipeline.HealthDeadLetter || h.URL != "https://example.com/" || h.Reason != "panic" {
		t.Errorf("got %+v, %v", h, err)
	}
	if again := m.handle(msg); len(again) > 0 {
		t.Errorf("the same letter is told again: %v", again)
	}
	if got, _ := m.replay("{}"); len(got) > 0 {
		t.Errorf("%v came back", got)
	}
	n := 0
	for l, err := range Letters(m.store.Begin().State("a")) {
		if err != nil || l.ID != msg.ID || l.Reason != "panic" || l.Group != "match" || string(l.Body) != "{" {
			t.Errorf("got %+v, %v", l, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d letters are kept, want 1", n)
	}
	d.Topic = flow.TopicHealth
	if out := m.handle(d.Message("other", "a", "")); len(out) > 0 {
		t.Errorf("that an event is dead makes another: %v", out)
	}
}

func TestBadDeadLetters(t *testing.T) {
	for name, tt := range map[string]struct {
		m    flow.Message
		want failure.Class
	}{
		"type":   {flow.Message{Topic: flow.TopicDead, Type: "vokter.surprise.v1"}, failure.ClassPermanent},
		"letter": {flow.Message{Type: flow.TypeDeadLetter, Body: []byte("{")}, failure.ClassPermanent},
		"replay": {flow.Message{Type: flow.TypeReplay, Body: []byte("{")}, failure.ClassPermanent},
	} {
		m := newDeadFixture(t)
		err := m.store.Handle(t.Context(), m.d, tt.m)
		if class, _ := failure.ClassOf(err); err == nil || class != tt.want {
			t.Errorf("%s: got %v, want class %v", name, err, tt.want)
		}
	}
	for _, name := range []string{"letters", "l/00000000000000000000"} {
		m := newDeadFixture(t)
		m.handle(m.letter("x", "", ""))
		tx := m.store.Begin()
		if err := tx.State("a").Set(name, []byte("\x07")); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		err := m.store.Handle(t.Context(), m.d, flow.Message{Type: flow.TypeWake, Key: "a"})
		if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
			t.Errorf("%s: got %v, want an error that stops the Router", name, err)
		}
		var last error
		for _, err := range Letters(m.store.Begin().State("a")) {
			last = errors.Join(last, err)
		}
		if name != "letters" && last == nil {
			t.Error("a damaged letter is listed")
		}
	}
}

// countingTx counts the values that a transaction reads.
type countingTx struct {
	*txtest.Tx
	n *int
}

func (r countingTx) State(key string) flow.State { return countingState{r.Tx.State(key), r.n} }

type countingState struct {
	flow.State
	n *int
}

func (c countingState) Get(name string) ([]byte, bool, error) {
	*c.n++
	return c.State.Get(name)
}

func (c countingState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		for name, v := range c.State.Scan(prefix) {
			if *c.n++; !yield(name, v) {
				return
			}
		}
	}
}

// TestReplayReadsEachLetterOnce selects some of many letters, behind a gap.
func TestReplayReadsEachLetterOnce(t *testing.T) {
	const gap, n = scanBatch, 4 * scanBatch
	m := newDeadFixture(t)
	tx := m.store.Begin()
	f := &letterStore{state: state{tx.State("a")}, Next: gap}
	for i := range n {
		a := flow.Addressed{Receiver: pipeline.Receiver{Sink: "a"}, Notification: pipeline.Notification{ID: fmt.Sprint(i), Client: []string{"c", "d"}[i%2]}}
		if _, err := f.add(Letter{ID: fmt.Sprint(i), DeadLetter: flow.DeadLetter{Time: m.now, Addressed: &a}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	tx.Commit()
	total, back := 0, 0
	for _, filter := range []string{`{"client":"nobody"}`, `{"client":"d"}`, `{"client":"c"}`} {
		msgs := []flow.Message{replayAll(filter)}
		for len(msgs) > 0 {
			reads := 0
			tx := m.store.Begin()
			if err := m.d.Process(t.Context(), countingTx{tx, &reads}, msgs[0]); err != nil {
				t.Fatal(err)
			}
			back += len(tx.Emitted())
			tx.Commit()
			if total += reads; reads > scanBatch+3 {
				t.Fatalf("one transaction reads %d values, want %d and a few at most", reads, scanBatch)
			}
			msgs = m.store.Start(m.now)
		}
	}
	if back != n || total > 3*n+2*scanBatch+100 {
		t.Errorf("%d of %d came back after %d reads", back, n, total)
	}
	if keys := m.store.Keys(); len(keys) > 0 {
		t.Errorf("there is still %v", m.store.Names("a"))
	}
}

// TestWokenForTheOldest has letters whose times are not in order.
func TestWokenForTheOldest(t *testing.T) {
	m := newDeadFixture(t)
	for _, at := range []time.Duration{30 * time.Second, 0, 10 * time.Second} {
		m.now = t0.Add(at)
		m.handle(m.letter(at.String(), "", ""))
	}
	m.now = t0.Add(time.Hour)
	m.replay(`{"client":"nobody"}`)
	if wake, ok := m.store.Wake("a"); !ok || !wake.At.Equal(t0.Add(keepLetters)) {
		t.Errorf("woken at %s, want 90 days after %s", wake.At, t0)
	}
}

// handleWakes handles wakes, as many as come at once, and returns how many there were.
func (m *deadFixture) handleWakes() int {
	m.t.Helper()
	for n := 0; ; n++ {
		wakes := m.store.Due(m.now)
		if len(wakes) == 0 {
			return n
		}
		if n == 100 {
			m.t.Fatalf("woken again and again at %s", m.now)
		}
		m.handle(wakes[0])
	}
}

// TestLettersAreForgotten: each letter is removed exactly when its time ends, even if the first
// one has a time in the future.
func TestLettersAreForgotten(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"clock set back": 1000 * 24 * time.Hour, "in order": 0} {
		t.Run(name, func(t *testing.T) {
			m := newDeadFixture(t)
			m.now = t0.Add(ahead)
			for i := range replayBatch + 1 {
				m.handle(m.letter(fmt.Sprint("ahead", i), "", ""))
			}
			m.now = t0
			m.handle(m.letter("now", "", ""))
			if ahead > 0 { // transports wake everything once then
				m.handle(flow.Message{Type: flow.TypeWake, Key: "a"})
			}
			m.handleWakes()
			m.now = t0.Add(time.Hour)
			m.handle(m.letter("later", "", ""))
			m.handleWakes()
			m.now = t0.Add(keepLetters - 1)
			if n := m.handleWakes(); n > 0 || len(m.ids()) != replayBatch+3 {
				t.Errorf("%d wakes, and %d letters left, before anything is old", n, len(m.ids()))
			}
			m.now = t0.Add(keepLetters)
			m.handleWakes()
			if got, want := m.ids(), []string{"later"}; !slices.Equal(got, want) {
				t.Errorf("%d letters left after 90 days, want %v", len(got), want)
			}
			m.now = m.now.Add(time.Hour)
			m.handleWakes()
			if keys := m.store.Keys(); len(keys) > 0 {
				t.Errorf("there is still %v", m.store.Names("a"))
			}
			if wake, ok := m.store.Wake("a"); ok {
				t.Errorf("there is nothing left, but a wake at %s", wake.At)
			}
		})
	}
}

// TestLargeLettersComeBackInParts: no transaction is much larger than one letter of a digest
// may be, and each comes back, however large it is.
func TestLargeLettersComeBackInParts(t *testing.T) {
	m := newDeadFixture(t)
	const letters = 40
	large := strings.Repeat("x", maxDigestBytes)
	for i := range letters {
		m.handle(m.letter(fmt.Sprintf("n%02d", i), large, ""))
	}
	m.handle(m.letter("huge", strings.Repeat("x", 2*replayBytes), ""))
	ids, transactions := m.replay("{}")
	if len(ids) != letters+1 || len(m.ids()) != 0 {
		t.Errorf("%d of %d letters came back, %d are left", len(ids), letters+1, len(m.ids()))
	}
	if least := letters * maxDigestBytes / replayBytes; transactions < least {
		t.Errorf("in %d transactions, want %d at least", transactions, least)
	}
}
