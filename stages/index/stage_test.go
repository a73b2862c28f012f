package index

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/test/txtest"
)

// desk drives a Stage over a store.
type desk struct {
	*testing.T
	store   *txtest.Store
	stage   *Stage
	now     time.Time
	steady  func() time.Time // nil while it goes with now
	n       int
	codes   []int // decisions, 0 for nil
	notes   []string
	out     []flow.Message
	request flow.Request // the last
}

func newDesk(t *testing.T, cfg Config) *desk {
	d := &desk{T: t, store: txtest.New(), now: t0}
	d.restart(cfg)
	return d
}

// restart begins a new process over the same store.
func (d *desk) restart(cfg Config) {
	cfg.Now = func() time.Time { return d.now }
	cfg.Steady = func() time.Time {
		if d.steady != nil {
			return d.steady()
		}
		return d.now
	}
	cfg.Decided = func(of flow.Decision) { d.codes = append(d.codes, of.Code) }
	cfg.Observe = func(ob flow.Observation) { d.notes = append(d.notes, ob.Kind) }
	d.stage = New(cfg)
}

func (d *desk) handle(m flow.Message) {
	d.Helper()
	d.n++
	d.now = d.now.Add(time.Second)
	if m.Type != flow.TypeWake {
		m.Position = fmt.Sprintf("S/documents/0/%d", d.n)
	}
	before := len(d.codes)
	if err := d.store.Handle(context.Background(), d.stage, m); err != nil {
		d.Fatalf("%s: %v", m.Type, err)
	}
	d.out = d.decided(m, before, d.store.Take())
	for _, m := range d.out {
		if m.Type == flow.TypeRequest {
			d.request = body[flow.Request](d, m)
		}
	}
}

// decided returns out without what it tells other processes of the command m: that is what
// was told here since there were before decisions.
func (d *desk) decided(m flow.Message, before int, out []flow.Message) []flow.Message {
	d.Helper()
	told := 0
	for i := 0; i < len(out); i++ {
		if out[i].Topic != flow.TopicDecisions {
			continue
		}
		told++
		c, err := flow.DecisionFrom(out[i])
		if last := d.codes[len(d.codes)-1]; err != nil || c.Command != m.ID || c.Code != last || (c.Reason != "") != (last != 0) || out[i].Key != m.Key {
			d.Errorf("%s %s: got the decision %+v (%v), want %d", m.Type, m.ID, c, err, last)
		}
		out = slices.Delete(out, i, i+1)
		i--
	}
	want := len(d.codes) - before
	if m.Type == flow.TypeApply {
		want = 0 // nobody waits for that
	}
	if told != want {
		d.Errorf("%s %s: %d decisions were told, want %d", m.Type, m.ID, told, want)
	}
	return out
}

func body[T any](d *desk, m flow.Message) T {
	d.Helper()
	var v T
	if err := json.Unmarshal(m.Encoded(), &v); err != nil {
		d.Fatalf("%s: %v", m.Type, err)
	}
	return v
}

func (d *desk) command(typ string, c any) {
	d.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		d.Fatal(err)
	}
	d.handle(flow.Message{ID: fmt.Sprint("cmd", d.n), Topic: flow.TopicDocuments, Key: page, Type: typ, Body: b})
}

func (d *desk) subscribe(client string) {
	d.Helper()
	d.command(flow.TypeSubscribe, flow.SubscribeCommand{Origin: "api", Subscription: pipeline.Subscription{
		URL: page, Client: client, Keywords: []string{"stock"}, Sinks: []string{"s"},
	}})
}

func (d *desk) cancel(client string) {
	d.Helper()
	d.command(flow.TypeCancel, flow.CancelCommand{URL: page, Client: client})
}

// answer brings the outcome of the last request: content for every document.
func (d *desk) answer(content string) {
	d.Helper()
	for i := range d.request.Documents {
		o := fetched(d.request, i, content)
		o.Time = d.now
		d.handle(o.Message())
	}
}

// fetched is the outcome for part of r, whose text is content.
func fetched(r flow.Request, part int, content string) flow.Outcome {
	return flow.Outcome{
		Page: page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Part: part, Parts: len(r.Documents),
		Document: r.Documents[part].ID, Kind: flow.OutcomeRead, BodyHash: "b" + text.Hash(content), TextHash: text.Hash(content),
		Title: "T", Packed: flow.PackText(content),
	}
}

// wake delivers the page's wake when it is due, until a request comes of it.
func (d *desk) wake() {
	d.Helper()
	for range 3 {
		w, ok := d.store.Wake(page)
		if !ok {
			d.Fatal("no wake is set")
		}
		d.now = latest(d.now, w.At)
		for _, m := range d.store.Due(d.now) {
			d.handle(m)
		}
		if slices.Contains(d.types(), flow.TypeRequest) {
			return
		}
	}
	d.Fatal("no request came")
}

// types are those of the messages that the last event emitted.
func (d *desk) types() []string {
	var ts []string
	for _, m := range d.out {
		ts = append(ts, m.Type)
	}
	return ts
}

const english = "The stock of the shop is counted every evening by those who work there.\nIt was never as large as it is this year.\n"

func tokens(content string) []byte { return text.PackTokens(text.Analyze(content)) }

func TestAPageFromSubscribeToEnd(t *testing.T) {
	d := newDesk(t, Config{Keep: 2})
	d.subscribe("c")
	if got, want := d.types(), []string{flow.TypeStamp, flow.TypeRequest}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	stamp := body[flow.Stamped](d, d.out[0])
	if stamp.Incarnation != "S/documents/0/1" || stamp.Stamp != 1 || stamp.Until != flow.Forever || d.out[0].Key != page {
		t.Errorf("got %+v", stamp)
	}
	if got, want := d.out[1].Key, "example.com:443"; got != want {
		t.Errorf("got the request under key %q, want %q", got, want)
	}
	texts := []string{english + "None left.\n", english + "One left.\n", english + "Two left.\n"}
	for i, content := range texts {
		if i > 0 {
			d.wake()
		}
		d.answer(content)
		if got, want := d.types(), []string{flow.TypeSnapshot}; !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		s, err := flow.SnapshotFrom(d.out[0])
		if err == nil {
			err = s.Unpack()
		}
		if err != nil {
			t.Fatal(err)
		}
		old := ""
		if i > 0 {
			old = texts[i-1]
		}
		if s.N != uint64(i+1) || s.Previous != uint64(i) || s.New != content || s.Old != old || s.Language != "en" || s.Title != "T" {
			t.Errorf("got snapshot %+v", s)
		}
		if doc, ok := s.Analysis.(*text.Doc); !ok || !bytes.Equal(text.PackTokens(doc), tokens(content)) || i > 0 && !bytes.Equal(s.OldTokens, tokens(old)) {
			t.Errorf("got the tokens %v and %v, want those of both texts", s.OldTokens, s.Analysis)
		}
	}
	want := []string{
		progressName, historyName + "01", historyName + "02", historyName + "03", pageName, "kept/" + whole, restlessName + whole, "sub/" + whole + "/c", "tok/" + whole,
		"v/" + whole + "/00000000000000000002", "v/" + whole + "/00000000000000000003",
	}
	if got := d.store.Names(page); !slices.Equal(got, want) {
		t.Errorf("got names %q, want %q", got, want)
	}
	if got, _ := d.store.Value(page, "tok/"+whole); !bytes.Equal(got, tokens(texts[2])) {
		t.Errorf("stored the tokens %v, want those of the latest version", got)
	}
	st := d.store.Begin().State(page)
	if v, ok, err := LoadVersion(st, whole, 3); err != nil || !ok || v.Language != "en" || v.TextHash != text.Hash(texts[2]) || !v.Time.Equal(d.now.Add(-time.Second)) {
		t.Errorf("got version %+v, %v, %v", v, ok, err)
	}
	if p, err := Load(st); err != nil || p.URL != page || p.Check != 3 {
		t.Errorf("got page %+v, %v", p, err)
	}
	if subs, err := Subscriptions(st); err != nil || len(subs) != 1 || subs[0].Subscription.Client != "c" {
		t.Errorf("got %+v, %v", subs, err)
	}

	d.cancel("c")
	if got, want := d.types(), []string{flow.TypeStamp, flow.TypeWithdraw, flow.TypeEnded}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if e := body[flow.Ended](d, d.out[2]); e.Incarnation != stamp.PageIncarnation || d.out[2].Topic != flow.TopicChanges || d.out[2].Key != page {
		t.Errorf("got %+v on %s, want the end of %s behind its changes", e, d.out[2].Topic, stamp.PageIncarnation)
	}
	if w := body[flow.Withdraw](d, d.out[1]); d.out[1].Key != "s" || w.Subscription != stamp.Incarnation || w.Page != page {
		t.Errorf("got %+v under %s, want the subscription taken back at its receiver", w, d.out[1].Key)
	}
	if s := body[flow.Stamped](d, d.out[0]); s.Until != 3 || s.Stamp != 2 || s.End != flow.EndCancelled {
		t.Errorf("got %+v, want the record ended at version 3", s)
	}
	if got := d.store.Names(page); len(got) != 0 {
		t.Errorf("got %q left", got)
	}
	if _, ok := d.store.Wake(page); ok {
		t.Error("got a wake of a page that ended")
	}
	if want := []int{0, 0}; !slices.Equal(d.codes, want) {
		t.Errorf("got decisions %v, want %v", d.codes, want)
	}
}

func TestAnUnchangedCheckIsTwoSmallWrites(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	d.answer(english)
	d.store.Writes()
	d.wake()
	o := flow.Outcome{Page: page, Incarnation: d.request.Incarnation, Check: d.request.Check, Nonce: d.request.Nonce, Kind: flow.OutcomeUnchanged, Against: d.request.BodyHash, Time: d.now}
	d.handle(o.Message())
	if got := d.store.Writes(); got != 2 { // the progress of the page, at the request and at the outcome
		t.Errorf("got %d writes, want 2", got)
	}
	d.handle(o.Message())
	if got := d.store.Writes(); got != 0 || len(d.out) != 0 {
		t.Errorf("a duplicate: got %d writes and %v", got, d.types())
	}
	if got := d.stage.run.requests.Len(); got != 0 {
		t.Errorf("got %d requests remembered, want none outstanding", got)
	}
	if want := []string{"version", "check", "check", "unchanged"}; !slices.Equal(d.notes, want) {
		t.Errorf("got observations %v, want %v", d.notes, want)
	}
}

// TestAnotherTenureAsksAgainAtOnce: who was to fetch may have gone down when the page was gained
// again, though its owner did not.
func TestAnotherTenureAsksAgainAtOnce(t *testing.T) {
	var epoch uint64
	d := newDesk(t, Config{Epoch: func(string) uint64 { return epoch }})
	d.subscribe("c")
	first := d.request
	epoch++
	for _, m := range d.store.Start(d.now) {
		d.handle(m)
	}
	if d.request.Check != first.Check+1 {
		t.Errorf("got check %d, want %d", d.request.Check, first.Check+1)
	}
}

func TestInvalidCommandsAreDecided(t *testing.T) {
	good := pipeline.Subscription{URL: page, Keywords: []string{"stock"}, Sinks: []string{"s"}}
	with := func(f func(*pipeline.Subscription)) flow.SubscribeCommand {
		s := good
		f(&s)
		return flow.SubscribeCommand{Subscription: s, Origin: "api"}
	}
	for name, c := range map[string]struct {
		typ  string
		body any
		want int
	}{
		"no URL":           {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.URL = "nonsense" }), flow.CodeURL},
		"another page":     {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.URL += "b" }), flow.CodeURL},
		"no token":         {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Keywords = []string{"!!!"} }), flow.CodeKeywords},
		"17 tokens":        {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Keywords = []string{strings.Repeat("a ", 17)} }), flow.CodeKeywords},
		"an unknown event": {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Events = []pipeline.Event{"moved"} }), flow.CodeEvents},
		"a bad interval":   {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Interval.Every = -2 }), flow.CodeFormat},
		"no sink":          {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Sinks = nil }), flow.CodeFormat},
		"two mistakes":     {flow.TypeSubscribe, with(func(s *pipeline.Subscription) { s.Sinks, s.Keywords = nil, []string{strings.Repeat("a", 1001)} }), flow.CodeKeywords},
		"no JSON object":   {flow.TypeSubscribe, "text", flow.CodeFormat},
		"no cancel":        {flow.TypeCancel, 1, flow.CodeFormat},
		"no list":          {flow.TypeApply, 1, flow.CodeFormat},
		"cancel nonsense":  {flow.TypeCancel, flow.CancelCommand{URL: "x"}, flow.CodeURL},
		"cancel nothing":   {flow.TypeCancel, flow.CancelCommand{URL: page, Client: "c"}, flow.CodeNotFound},
		"apply elsewhere":  {flow.TypeApply, flow.ApplyCommand{URL: page + "b"}, flow.CodeURL},
		"a bad entry":      {flow.TypeApply, flow.ApplyCommand{URL: page, Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"!!!"}, Sinks: []string{"s"}}}}, flow.CodeKeywords},
		"a pair twice":     {flow.TypeApply, flow.ApplyCommand{URL: page, Subscriptions: []pipeline.Subscription{good, good}}, flow.CodeConflict},
		"another's entry": {flow.TypeApply, flow.ApplyCommand{URL: page, Client: "c",
			Subscriptions: []pipeline.Subscription{with(func(s *pipeline.Subscription) { s.Client = "d" }).Subscription}}, flow.CodeFormat},
	} {
		d := newDesk(t, Config{})
		d.command(c.typ, c.body)
		if !slices.Equal(d.codes, []int{c.want}) {
			t.Errorf("%s: got %v, want %d", name, d.codes, c.want)
		}
		var want []string
		if c.typ != flow.TypeApply {
			want = []string{flow.TypeHealth}
		}
		if !slices.Equal(d.types(), want) || len(d.store.Names(page)) != 0 {
			t.Errorf("%s: got %v and %v, want %v and no state", name, d.types(), d.store.Names(page), want)
		}
	}
}

func TestCommandsAreSynced(t *testing.T) {
	d := newDesk(t, Config{})
	for typ, want := range map[string]bool{flow.TypeCancel: true, flow.TypeApply: false, flow.TypeCheckNow: false} {
		tx := d.store.Begin()
		m := flow.Message{ID: "m", Key: page, Type: typ, Position: "S/documents/0/1", Body: []byte(`{"url":"` + page + `"}`)}
		if err := d.stage.Process(context.Background(), tx, m); err != nil {
			t.Fatal(err)
		}
		if tx.Synced() != want {
			t.Errorf("%s: got synced %v, want %v", typ, tx.Synced(), want)
		}
		if len(d.codes) != 0 {
			t.Errorf("%s: told before the commit", typ)
		}
	}
}

func TestWhatCannotBeHandledIsClassified(t *testing.T) {
	for name, c := range map[string]struct {
		stored map[string][]byte
		m      flow.Message
		want   failure.Class
	}{
		"unknown":             {nil, flow.Message{ID: "1", Topic: flow.TopicDocuments, Key: page, Type: "vokter.future.v9", Position: "p"}, failure.ClassPermanent},
		"a broken outcome":    {nil, flow.Message{ID: "2", Key: page, Type: flow.TypeOutcome, Position: "p"}, failure.ClassPermanent},
		"a posted subscribe":  {nil, flow.Message{ID: "3", Key: page, Type: flow.TypeSubscribe}, failure.ClassPermanent},
		"a posted resume":     {nil, flow.Message{ID: "4", Key: page, Type: flow.TypeResume}, failure.ClassPermanent},
		"a newer page":        {map[string][]byte{progressName: {9}}, flow.Message{ID: "5", Key: page, Type: flow.TypeWake}, failure.ClassBroken},
		"a damaged page":      {map[string][]byte{progressName: {format, 0xff}}, flow.Message{ID: "6", Key: page, Type: flow.TypeWake}, failure.ClassBroken},
		"an empty page value": {map[string][]byte{progressName: {}}, flow.Message{ID: "7", Key: page, Type: flow.TypeWake}, failure.ClassBroken},
		"a damaged subscription": {map[string][]byte{"sub/d/c": {format, '{'}},
			flow.Message{ID: "8", Key: page, Type: flow.TypeExpire, Position: "p", Body: []byte(`{"url":"` + page + `","receiver":"s"}`)}, failure.ClassBroken},
	} {
		d := newDesk(t, Config{})
		tx := d.store.Begin()
		for n, v := range c.stored {
			if err := tx.State(page).Set(n, v); err != nil {
				t.Fatal(err)
			}
		}
		err := d.stage.Process(context.Background(), tx, c.m)
		if class, _ := failure.ClassOf(err); err == nil || class != c.want {
			t.Errorf("%s: got %v of class %v, want class %v", name, err, class, c.want)
		}
	}
}

func TestApplyTwice(t *testing.T) {
	d := newDesk(t, Config{})
	c := flow.ApplyCommand{URL: "HTTPS://example.com:443/a#x", Origin: "watch", Client: "default", Subscriptions: []pipeline.Subscription{
		{URL: "HTTPS://example.com/a", Keywords: []string{"stock"}, Sinks: []string{"s"}},
	}}
	d.command(flow.TypeApply, c)
	s := body[flow.Stamped](d, d.out[0])
	if s.Subscription.Client != "default" || s.Subscription.URL != "HTTPS://example.com/a" || s.Page != page || s.Incarnation != "S/documents/0/1/0" {
		t.Errorf("got %+v", s)
	}
	d.command(flow.TypeApply, c)
	if len(d.out) != 0 {
		t.Errorf("got %v of the same list", d.types())
	}
	c.Subscriptions = nil
	d.command(flow.TypeApply, c)
	if !slices.Contains(d.types(), flow.TypeEnded) {
		t.Errorf("got %v of an empty list, want the end", d.types())
	}
	if want := []int{0, 0, 0}; !slices.Equal(d.codes, want) {
		t.Errorf("got %v, want %v", d.codes, want)
	}
}
