package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/test/txtest"
)

const page = "https://example.com/"

// stageTest is a stage with its store.
type stageTest struct {
	t *testing.T
	*txtest.Store
	p *Processor
}

func newStageTest(t *testing.T, cfg Config) stageTest { return stageTest{t, txtest.New(), New(cfg)} }

// stateNames returns the names in the page's state that begin with kind.
func (h stageTest) stateNames(kind string) []string {
	return slices.DeleteFunc(h.Names(page), func(n string) bool { return !strings.HasPrefix(n, kind) })
}

func newMessage(typ string, v any) flow.Message {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return flow.Message{ID: "m", Key: page, Type: typ, Body: b}
}

// newStamped is subscription i of document "doc", at stamp.
func newStamped(i, stamp, from int, until uint64, words ...string) flow.Stamped {
	return flow.Stamped{
		Page: page, PageIncarnation: "inc", Document: "doc", Incarnation: fmt.Sprint("sub", i), Stamp: uint64(stamp),
		From: uint64(from), Until: until, Origin: "go",
		Subscription: pipeline.Subscription{URL: "HTTPS://example.com", Client: fmt.Sprint("c", i), Keywords: words, Sinks: []string{"hook", "log", "hook"}},
	}
}

// endStamped is what ends s.
func endStamped(s flow.Stamped, stamp int, until uint64) flow.Stamped {
	s.Stamp, s.Until = uint64(stamp), until
	return s
}

// keepSubscription does what index does with s.
func keepSubscription(st *txtest.Store, s flow.Stamped) {
	var b []byte
	if s.Until == flow.Forever {
		var err error
		if b, err = stored.Encode(flow.KeptFormat, s); err != nil {
			panic(err)
		}
	}
	st.SetBeside(flow.GroupIndex, s.Page, flow.KeptSubscriptions+s.Name(), b)
}

func (h stageTest) applyStamps(ss ...flow.Stamped) {
	h.t.Helper()
	for _, s := range ss {
		keepSubscription(h.Store, s)
		if err := h.Handle(context.Background(), h.p, newMessage(flow.TypeStamp, s)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// newChange is version n, which added words.
func newChange(n int, words string) *flow.Change {
	c, _ := changeOf(64, groupTexts{old: "old", new: "old " + words})
	c.ID, c.Version, c.Previous = fmt.Sprint("change", n), uint64(n), uint64(n-1)
	c.Time, c.Title = time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC), "A title"
	return c
}

func (h stageTest) handleChange(c *flow.Change) ([]flow.Addressed, error) {
	err := h.Handle(context.Background(), h.p, newMessage(flow.TypeChange, c))
	var out []flow.Addressed
	for _, m := range h.Take() {
		if m.Type == flow.TypeTold {
			continue
		}
		var a flow.Addressed
		if jerr := json.Unmarshal(m.Body, &a); jerr != nil || m.Topic != flow.TopicNotifications {
			h.t.Fatalf("emitted %s on %s: %v", m.Body, m.Topic, jerr)
		}
		out = append(out, a)
	}
	return out, err
}

// recipients returns who is told of c: "client/sink".
func (h stageTest) recipients(c *flow.Change) string {
	h.t.Helper()
	as, err := h.handleChange(c)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, a := range as {
		out = append(out, a.Notification.Client+"/"+a.Receiver.Sink)
	}
	return strings.Join(out, " ")
}

// TestTitleOfASubscription: a notification has the title of the subscription in place of that of the page.
func TestTitleOfASubscription(t *testing.T) {
	h := newStageTest(t, Config{})
	named := newStamped(1, 1, 0, flow.Forever, "argus")
	named.Subscription.Title = "My page"
	h.applyStamps(named)
	as, err := h.handleChange(newChange(1, "argus sees"))
	if err != nil || len(as) != 2 || as[0].Notification.Title != "My page" {
		t.Errorf("got %+v, %v", as, err)
	}
}

func TestNotification(t *testing.T) {
	var seen []flow.Observation
	h := newStageTest(t, Config{Observe: func(o flow.Observation) { seen = append(seen, o) }})
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus"))
	c := newChange(1, "argus sees")
	as, err := h.handleChange(c)
	if err != nil || len(as) != 2 {
		t.Fatalf("%d notifications, %v", len(as), err)
	}
	id := flow.NotificationID("change1", "sub1", "hook")
	want := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "hook"}, Document: "doc", Subscription: "sub1",
		Notification: pipeline.Notification{
			Status: "ok", URL: "HTTPS://example.com", ID: id, Type: "notification", Time: c.Time, Client: "c1", Version: 1,
			Title: "A title", Language: "en", Change: "change1",
			Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "argus sees", Snippet: "old argus sees", SnippetAt: 4, Offset: 4}},
		},
	}
	if !reflect.DeepEqual(as[0], want) {
		t.Errorf("got %+v\nwant %+v", as[0], want)
	}
	if as[1].Receiver.Sink != "log" || as[1].Notification.ID == id {
		t.Errorf("the other goes to %v with ID %s", as[1].Receiver, as[1].Notification.ID)
	}
	if len(seen) != 2 || seen[0].Kind != flow.KindNotification || seen[0].ID != id || seen[0].N != 1 {
		t.Errorf("observed %+v", seen)
	}
}

func TestWhoHearsWhat(t *testing.T) {
	h := newStageTest(t, Config{})
	first, second := newStamped(1, 1, 0, flow.Forever, "argus"), newStamped(2, 2, 1, flow.Forever, "argus")
	h.applyStamps(first, second)
	if got := h.recipients(newChange(1, "argus")); got != "c1/hook c1/log" {
		t.Errorf("version 1 is told to %q", got)
	}
	if got := h.recipients(newChange(2, "argus")); got != "c1/hook c1/log c2/hook c2/log" {
		t.Errorf("version 2 is told to %q", got)
	}
	h.applyStamps(endStamped(first, 3, 2))
	if got := h.recipients(newChange(3, "argus")); got != "c2/hook c2/log" {
		t.Errorf("version 3 is told to %q", got)
	}
	// The second asks for another keyword from version 3 on.
	h.applyStamps(endStamped(second, 4, 3), newStamped(2, 5, 3, flow.Forever, "zeus"))
	if got := h.recipients(newChange(4, "argus zeus")); got != "c2/hook c2/log" {
		t.Errorf("version 4 is told to %q", got)
	}
	if got := h.recipients(newChange(5, "argus")); got != "" {
		t.Errorf("version 5 is told to %q", got)
	}
	// Nothing of a subscription is kept here.
	if got := h.stateNames(kindEnded); len(got) != 0 {
		t.Errorf("the state holds %q", got)
	}
	// Another document of the page is none of theirs.
	c := newChange(6, "zeus")
	c.Document = "other"
	if got := h.recipients(c); got != "" {
		t.Errorf("another document is told to %q", got)
	}
}

// TestATableSeesItsTransaction: a subscription and a change in one transaction, whichever comes first.
func TestATableSeesItsTransaction(t *testing.T) {
	h := newStageTest(t, Config{})
	h.recipients(newChange(1, "nothing")) // so that a table is in memory
	both := func(commit bool, ms ...flow.Message) (told int) {
		t.Helper()
		tx := h.Begin()
		for _, m := range ms {
			if err := h.p.Process(t.Context(), tx, m); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range tx.Emitted() {
			if m.Type == flow.TypeAddressed {
				told++
			}
		}
		if commit {
			tx.Commit()
		}
		h.Take()
		return told
	}
	one, two := newStamped(1, 1, 1, flow.Forever, "argus"), newStamped(2, 2, 2, flow.Forever, "argus")
	keepSubscription(h.Store, one)
	for _, commit := range []bool{false, true} { // a failed attempt, and another one
		if got := both(commit, newMessage(flow.TypeStamp, one), newMessage(flow.TypeChange, newChange(2, "argus"))); got != 2 {
			t.Errorf("%d notifications of a change behind a subscription, want 2", got)
		}
	}
	both(true, newMessage(flow.TypeChange, newChange(3, "hera")), newMessage(flow.TypeStamp, two))
	keepSubscription(h.Store, two)
	if got := h.recipients(newChange(4, "argus")); got != "c1/hook c1/log c2/hook c2/log" {
		t.Errorf("told to %q", got)
	}
}

// TestATableOfAnEarlierEpochIsOld: another process may have owned the page meanwhile.
func TestATableOfAnEarlierEpochIsOld(t *testing.T) {
	epoch := uint64(1)
	h := newStageTest(t, Config{Epoch: func(string) uint64 { return epoch }})
	h.recipients(newChange(1, "argus"))
	keepSubscription(h.Store, newStamped(1, 1, 0, flow.Forever, "argus")) // by the other process
	epoch++
	if got := h.recipients(newChange(2, "argus")); got != "c1/hook c1/log" {
		t.Errorf("told to %q", got)
	}
}

func TestEnded(t *testing.T) {
	h := newStageTest(t, Config{})
	s := newStamped(1, 1, 0, flow.Forever, "argus")
	h.applyStamps(s)
	h.recipients(newChange(1, "argus"))
	h.applyStamps(endStampedBecause(s, 2, 1, flow.EndExpired)) // its client is not told, so a record is left
	if err := h.Handle(context.Background(), h.p, newMessage(flow.TypeEnded, flow.Ended{Page: page, Incarnation: "inc"})); err != nil {
		t.Fatal(err)
	}
	if left := h.Names(page); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if n := h.p.cache.Bytes(); n != 0 {
		t.Errorf("tables of %d bytes are left in memory", n)
	}
	next := newStamped(1, 1, 0, flow.Forever, "argus")
	next.PageIncarnation = "inc2"
	h.applyStamps(next)
	if got := h.recipients(newChange(1, "argus")); got != "" {
		t.Errorf("a change of the life that ended is told to %q", got)
	}
	c := newChange(1, "argus")
	c.Incarnation = "inc2"
	if got := h.recipients(c); got != "c1/hook c1/log" {
		t.Errorf("the next life is told to %q", got)
	}
}

func TestWhatCannotBeHandled(t *testing.T) {
	h := newStageTest(t, Config{})
	bad := newChange(1, "argus")
	bad.Groups[0].New[0].Edits = []flow.Span{{0, 99}}
	for name, c := range map[string]struct {
		flow.Message
		want failure.Class
	}{
		"an unknown type":      {flow.Message{ID: "m", Key: page, Type: "vokter.other.v1"}, failure.ClassBroken},
		"one of others":        {flow.Message{ID: "m", Key: page, Type: "com.example.other", Source: "/crm"}, failure.ClassPermanent},
		"a body that is none":  {flow.Message{ID: "m", Key: page, Type: flow.TypeChange, Body: []byte("{")}, failure.ClassPermanent},
		"a stamp that is none": {flow.Message{ID: "m", Key: page, Type: flow.TypeStamp, Body: []byte("7")}, failure.ClassPermanent},
		"a window that lies":   {newMessage(flow.TypeChange, bad), failure.ClassPermanent},
	} {
		err := h.Handle(context.Background(), h.p, c.Message)
		if class, _ := failure.ClassOf(err); err == nil || class != c.want {
			t.Errorf("%s: error %v of class %d, want %d", name, err, class, c.want)
		}
	}
}

func TestDamagedState(t *testing.T) {
	expire := outageAt(1)
	for _, c := range []struct {
		at string
		m  flow.Message
	}{
		{backlogName, newMessage(flow.TypeChange, newChange(1, "argus"))},
		{stateName(kindEnded, "inc", "doc", "/c9", "0"), newMessage(flow.TypeChange, newChange(1, "argus"))},
		{historyName, newMessage(flow.TypeChange, newChange(1, "argus"))},
		{tellName("inc", 1), newMessage(flow.TypeOutage, expire)},
	} {
		for what, value := range map[string][]byte{"another format": {9, 9}, "cut off": {stateFormat, '{'}, "empty": {}} {
			h := newStageTest(t, Config{})
			h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus"))
			tx := h.Begin()
			_ = tx.State(page).Set(c.at, value)
			tx.Commit()
			err := h.Handle(context.Background(), h.p, c.m)
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
				t.Errorf("%q is %s: error %v of class %d, want a broken store", c.at, what, err, class)
			}
		}
	}
}

// TestNothingOfAFailedAttemptCounts handles a change in a transaction that is not committed.
func TestNothingOfAFailedAttemptCounts(t *testing.T) {
	var seen int
	h := newStageTest(t, Config{Observe: func(flow.Observation) { seen++ }})
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus"))
	c := newChange(1, "argus")
	for range 3 {
		tx := h.Begin()
		if err := h.p.Process(context.Background(), tx, newMessage(flow.TypeChange, c)); err != nil {
			t.Fatal(err)
		}
		if len(tx.Emitted()) != 3 { // two notifications, and what index is told of them
			t.Errorf("%d messages", len(tx.Emitted()))
		}
	}
	if seen != 0 {
		t.Errorf("%d observations without a commit", seen)
	}
	if got := h.recipients(c); got != "c1/hook c1/log" || seen != 2 {
		t.Errorf("told to %q, observed %d", got, seen)
	}
}

// TestSizeOfATable compares what a table says with the memory that it takes.
func TestSizeOfATable(t *testing.T) {
	const n = 20_000
	before := heapSize()
	table := newTestTable(text.NewLanguages())
	for i := range n {
		s := newStamped(i, i+1, 0, flow.Forever, fmt.Sprint("word", i), "and one of all")
		table.add(fmt.Sprintf("%08d/client", i), &s)
	}
	took := heapSize() - before
	if said := table.size(); said < took/2 || said > took*2 {
		t.Errorf("a table of %d bytes says %d", took, said)
	}
	runtime.KeepAlive(table)
}

// TestMemoryIsAskedFor: a change is read once there is memory for it, which is given back.
func TestMemoryIsAskedFor(t *testing.T) {
	var asked, held int64
	var refusal error
	h := newStageTest(t, Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		if refusal != nil {
			return nil, refusal
		}
		asked = bytes
		held += bytes
		return func() { held -= bytes }, nil
	}})
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus"))
	c := newChange(2, "argus")
	if told, err := h.handleChange(c); err != nil || len(told) == 0 {
		t.Fatalf("told %v, %v", told, err)
	}
	if want := int64(memoryPerByte * len(newMessage(flow.TypeChange, c).Body)); asked != want || held != 0 {
		t.Errorf("asked for %d bytes, want %d; %d were not given back", asked, want, held)
	}
	refusal = errors.New("stopping")
	if _, err := h.handleChange(newChange(3, "argus")); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
}

// newTestTable returns a table without subscriptions.
func newTestTable(langs *text.Languages) *table {
	return &table{language: "en", index: newIndex("en", langs), followed: map[string]bool{}}
}

// A change that another stage handed on in memory is not decoded.
func TestMadeChange(t *testing.T) {
	h := newStageTest(t, Config{})
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "late"))
	if got := h.handle(newChange(2, "late").Message()); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

// heapSize is how many bytes are in use.
func heapSize() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
