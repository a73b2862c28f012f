package inspector_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

const page = "https://example.com/shop"

// onlyPageAndReceiver returns the single page and the single receiver of a listing.
func onlyPageAndReceiver(t *testing.T, l inspect.Listing) (inspect.Page, inspect.Receiver) {
	t.Helper()
	if len(l.Pages) != 1 || len(l.Receivers) != 1 {
		t.Fatalf("got %+v, want one page and one receiver", l)
	}
	return l.Pages[0], l.Receivers[0]
}

// keywordResults returns "KEYWORD: why it did not match", or "KEYWORD!" where it matched.
func keywordResults(e inspect.Explanation) (all []string) {
	for _, k := range e.Keywords {
		if k.Matched {
			all = append(all, k.Keyword+"!")
		} else {
			all = append(all, k.Keyword+": "+k.Why)
		}
	}
	return all
}

func TestPageThatWasNeverFetched(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	p, rc := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
	if p.URL != page || p.State != inspect.StateActive || p.Checks != 0 || !p.LastCheck.IsZero() || !p.NextCheck.IsZero() || p.Failures != 0 {
		t.Errorf("got page %+v, want an active one without a check", p)
	}
	if len(p.Documents) != 1 || p.Documents[0].Version != 0 || p.Documents[0].TextHash != "" {
		t.Errorf("got documents %+v, want one without a version", p.Documents)
	}
	if len(p.Subscriptions) != 1 || p.Subscriptions[0].State != inspect.StateActive || p.Subscriptions[0].Client != "ann" || p.Subscriptions[0].Origin != flow.OriginAPI {
		t.Errorf("got subscriptions %+v", p.Subscriptions)
	}
	if want := (inspect.Receiver{Sink: "phone", State: inspect.StateActive}); rc != want {
		t.Errorf("got receiver %+v, want %+v", rc, want)
	}
	e := s.explain(page, inspect.ExplainFilter{})
	if e.Checks == nil || e.Changes == nil || len(e.Checks)+len(e.Changes) != 0 {
		t.Errorf("got checks %#v, changes %#v, want empty lists", e.Checks, e.Changes)
	}
	if got, want := keywordResults(e), []string{"sold out: the document has no version yet"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPageThatFails(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.answer(pipeline.FailDNS, "no such host")
	first := s.now
	s.check(page)
	s.answer(pipeline.FailStatus, "answered 500 Internal Server Error")
	p, _ := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
	if p.State != inspect.StateFailing || p.Reason != "answered 500 Internal Server Error" || !p.Since.Equal(first) || p.Failures != 2 || p.Checks != 2 {
		t.Errorf("got page %+v, want it failing since the first check for the last reason", p)
	}
	if !p.NextCheck.After(s.now) {
		t.Errorf("the next check is at %v, want it after %v", p.NextCheck, s.now)
	}
	e := s.explain(page, inspect.ExplainFilter{})
	var got []string
	for _, c := range e.Checks {
		got = append(got, c.Result+" "+c.Class+" "+c.Reason)
	}
	if want := []string{"failed status answered 500 Internal Server Error", "failed dns no such host"}; !slices.Equal(got, want) {
		t.Errorf("got checks %q, want %q", got, want)
	}

	s.check(page)
	s.read("in stock")
	if p, _ := onlyPageAndReceiver(t, s.list(inspect.ListFilter{})); p.State != inspect.StateActive || p.Reason != "" || !p.Since.IsZero() || p.Failures != 0 {
		t.Errorf("got page %+v, want nothing of the failures after a good check", p)
	}
}

func TestPageThatExpired(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	for s.answer(pipeline.FailStatus, "answered 404 Not Found"); ; s.answer(pipeline.FailStatus, "answered 404 Not Found") {
		if _, ok := s.groups[flow.GroupIndex].Wake(page); !ok {
			break
		}
		s.check(page)
	}
	p, _ := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
	if p.State != inspect.StateExpired || p.Failures != 10 || !strings.Contains(p.Reason, "404") || !p.Since.Equal(s.now) || !p.NextCheck.IsZero() || p.Checks != 10 {
		t.Errorf("got page %+v, want it expired after 10 checks", p)
	}
	e := s.explain(page, inspect.ExplainFilter{})
	if len(e.Changes) != 1 || !strings.Contains(e.Changes[0].Reason, "404") || len(e.Changes[0].Matches) != 1 || e.Changes[0].Matches[0].Delivery != inspect.DeliveryDelivered {
		t.Errorf("got changes %+v, want the end of the page, which was delivered", e.Changes)
	}
}

// TestBaseline: the first version is no change, the second one is.
func TestBaseline(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	for _, body := range []string{"in stock", "sold out"} {
		s.read(body)
		p, _ := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
		if d := p.Documents[0]; d.Baseline != (body == "in stock") || d.Time.IsZero() {
			t.Errorf("%s: got %+v", body, d)
		}
		s.check(page)
	}
}

// TestPageThatIsPaused: the page is listed as paused, and its versions can be read, also with a token
// for its client.
func TestPageThatIsPaused(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	body, err := json.Marshal(flow.PauseCommand{URL: page, Client: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s.send(flow.Message{ID: "pause", Topic: flow.TopicDocuments, Key: page, Type: flow.TypePause, Body: body, Time: s.now})
	p, _ := onlyPageAndReceiver(t, s.list(inspect.ListFilter{State: inspect.StatePaused}))
	if p.State != inspect.StatePaused || p.Pushed || !p.NextCheck.IsZero() || len(p.Documents) != 1 || p.Documents[0].Version != 1 || p.Checks != 1 {
		t.Errorf("got page %+v, want it paused, with its document", p)
	}
	if l := s.list(inspect.ListFilter{State: inspect.StateActive}); len(l.Pages) > 0 {
		t.Errorf("got the active pages %+v, want none", l.Pages)
	}
	text, err := inspector.VersionText(s, page, 0, inspect.DocumentFilter{Clients: []string{"ann"}})
	if err != nil || text.N != 1 || text.Text != "in stock" {
		t.Errorf("got %+v (%v), want version 1", text, err)
	}
}

// TestPausedDocument: a page whose documents are all found but one that nobody watches now does not fail.
func TestPausedDocument(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.subscribeTo(pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}, page, "bob", "sold out")
	s.check(page)
	r := s.request
	for i, d := range r.Documents {
		o := flow.Outcome{Page: r.Page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Part: i, Parts: len(r.Documents), Document: d.ID, Kind: flow.OutcomeRead, Time: s.now, Status: 200, TextHash: text.Hash("in stock"), Packed: flow.PackText("in stock")}
		if !d.View.IsZero() {
			o.Kind, o.Class, o.Reason = flow.OutcomeFailed, pipeline.FailSelectorGone, "main matches nothing"
		}
		s.send(o.Message())
	}
	failing := inspect.ListFilter{State: inspect.StateFailing}
	if l := s.list(failing); len(l.Pages) != 1 || l.Pages[0].Reason != "main matches nothing" {
		t.Fatalf("got the failing pages %+v, want one", l.Pages)
	}
	body, err := json.Marshal(flow.PauseCommand{URL: page, Client: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	s.send(flow.Message{ID: "pause", Topic: flow.TopicDocuments, Key: page, Type: flow.TypePause, Body: body, Time: s.now})
	if l := s.list(failing); len(l.Pages) > 0 {
		t.Errorf("got the failing pages %+v after the pause, want none", l.Pages)
	}
	if l := s.list(inspect.ListFilter{State: inspect.StateActive}); len(l.Pages) != 1 {
		t.Errorf("got the active pages %+v, want one", l.Pages)
	}
}

func TestReceiverThatExpired(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	s.check(page)
	s.fail = failure.Gone(errors.New("the chat was deleted"))
	s.read("sold out")
	const reason = "the receiver is gone: the chat was deleted"
	p, rc := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
	want := inspect.Receiver{
		Sink: "phone", State: inspect.StateExpired, Reason: reason, Since: s.now, Failures: 1, Dead: 1, Used: true,
		LastFailure: s.now, LastError: "the chat was deleted",
	}
	if rc != want {
		t.Errorf("got receiver %+v, want %+v", rc, want)
	}
	if sub := p.Subscriptions[0]; sub.State != inspect.StateExpired || sub.Reason != reason || !sub.Since.Equal(s.now) {
		t.Errorf("got subscription %+v, want it expired with its receiver", sub)
	}
	if p.State != inspect.StateExpired || p.Reason != reason || !p.Since.Equal(s.now) || p.Failures != 0 {
		t.Errorf("got page %+v, want it expired with its last subscription", p)
	}
	e := s.explain(page, inspect.ExplainFilter{})
	if m := e.Changes[0].Matches[0]; m.Delivery != inspect.DeliveryDead || m.Attempts != 1 || m.Reason != reason {
		t.Errorf("got match %+v, want it dead", m)
	}
	if got, want := keywordResults(e), []string{"sold out: the subscription expired: " + reason}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReceiverThatFails(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	s.check(page)
	s.fail = errors.New("answered 503")
	s.read("sold out")
	_, rc := onlyPageAndReceiver(t, s.list(inspect.ListFilter{}))
	if rc.State != inspect.StateFailing || rc.Reason != "answered 503" || rc.LastError != "answered 503" || rc.Failures != 1 || rc.Pending != 1 || rc.Dead != 0 || !rc.NextAttempt.After(s.now) {
		t.Errorf("got receiver %+v, want one notification that waits for its next attempt", rc)
	}
	if m := s.explain(page, inspect.ExplainFilter{}).Changes[0].Matches[0]; m.Delivery != inspect.DeliveryPending || m.Reason != "answered 503" {
		t.Errorf("got match %+v, want it pending", m)
	}
}

func TestKeywords(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out", "lantern", "unicorn")
	s.read("A lantern is in stock.")
	baseline := "version 1 is the baseline, and nothing has changed since"
	if got, want := keywordResults(s.explain(page, inspect.ExplainFilter{Keyword: "unicorn"})), []string{"unicorn: " + baseline}; !slices.Equal(got, want) {
		t.Errorf("of a baseline: got %q, want %q", got, want)
	}
	s.check(page)
	s.read("A lantern is sold out.")
	e := s.explain(page, inspect.ExplainFilter{})
	got := keywordResults(e)
	if len(got) != 3 || got[0] != "sold out!" || !strings.HasPrefix(got[1], "lantern: it stayed, and text beside it changed; near: block") || got[2] != "unicorn: it is in neither version" {
		t.Errorf("got %q", got)
	}
	if len(e.Changes) != 1 || len(e.Changes[0].Matches) != 1 {
		t.Fatalf("got changes %+v, want one with one match", e.Changes)
	}
	m := e.Changes[0].Matches[0]
	if m.Client != "ann" || !slices.Equal(m.Keywords, []string{"sold out"}) || m.Sink != "phone" || m.Delivery != inspect.DeliveryDelivered || m.Attempts != 1 {
		t.Errorf("got match %+v", m)
	}

	e = s.explain(page, inspect.ExplainFilter{Keyword: "unicorn"})
	if len(e.Keywords) != 1 || len(e.Changes) != 1 || len(e.Changes[0].Matches) != 0 {
		t.Errorf("of one keyword: got %+v", e)
	}
	if got, want := keywordResults(s.explain(page, inspect.ExplainFilter{Keyword: "dragon"})), []string{"dragon: no subscription to this page has this keyword"}; !slices.Equal(got, want) {
		t.Errorf("of a keyword that nobody has: got %q, want %q", got, want)
	}
}

func TestFilters(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.subscribe(page, "bob", "lantern")
	s.subscribe("https://example.com/b", "bob", "lantern")
	for _, tt := range []struct {
		filter     inspect.ListFilter
		want       []string // clients of each page
		configured []string
		receivers  int
	}{
		{inspect.ListFilter{}, []string{"b: bob", "shop: ann bob"}, []string{"spare"}, 1},
		{inspect.ListFilter{Sinks: true}, []string{"b: bob", "shop: ann bob"}, []string{"spare"}, 2},
		{inspect.ListFilter{Client: "ann"}, []string{"shop: ann"}, nil, 1},
		{inspect.ListFilter{URL: "HTTPS://EXAMPLE.COM/shop"}, []string{"shop: ann bob"}, nil, 1},
		{inspect.ListFilter{URL: page, Client: "nobody"}, nil, nil, 0},
		{inspect.ListFilter{URL: "https://example.com/other"}, nil, nil, 0},
	} {
		l := s.list(tt.filter, tt.configured...)
		var got []string
		for _, p := range l.Pages {
			line := strings.TrimPrefix(p.URL, "https://example.com/") + ":"
			for _, sub := range p.Subscriptions {
				line += " " + sub.Client
			}
			got = append(got, line)
		}
		if !slices.Equal(got, tt.want) || len(l.Receivers) != tt.receivers || l.Pages == nil || l.Receivers == nil {
			t.Errorf("%+v: got %q and receivers %+v, want %q and %d", tt.filter, got, l.Receivers, tt.want, tt.receivers)
		}
	}
	if got := s.explain(page, inspect.ExplainFilter{Client: "bob"}); len(got.Keywords) != 1 || got.Keywords[0].Client != "bob" || len(got.Page.Subscriptions) != 1 {
		t.Errorf("of one client: got %+v", got)
	}
}

func TestWhatCannotBeExplained(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	explain := func(url, client string) error {
		_, err := inspector.Explain(t.Context(), s, text.NewLanguages(), url, inspect.ExplainFilter{Client: client})
		return err
	}
	for name, err := range map[string]error{
		"https://example.com/other is not watched": explain("https://example.com/other", ""),
		page + ` is not watched for client "bob"`:  explain(page, "bob"),
	} {
		if refusal, ok := errors.AsType[*flow.Refusal](err); !ok || refusal.Code != flow.CodeNotFound || refusal.Message != name {
			t.Errorf("got %v, want %s", err, name)
		}
	}
	if err := explain("nowhere", ""); err == nil {
		t.Error("a text that is no URL was explained")
	}
	s.foreign[page] = true
	if err := explain(page, ""); !errors.Is(err, inspect.ErrElsewhere) {
		t.Errorf("a page that another process owns: got %v, want ErrElsewhere", err)
	}
	s.owner = "vokter-web2-4711 at 10.0.0.2"
	if err := explain(page, ""); !errors.Is(err, inspect.ErrElsewhere) || err.Error() != page+": another process owns it: vokter-web2-4711 at 10.0.0.2; ask that one" {
		t.Errorf("a page that a known process owns: got %v", err)
	}
	if _, err := inspector.List(t.Context(), s, inspect.ListFilter{URL: page}, nil); !errors.Is(err, inspect.ErrElsewhere) {
		t.Errorf("a page that another process owns: got %v, want ErrElsewhere", err)
	}
	if l := s.list(inspect.ListFilter{}); len(l.Pages) != 0 {
		t.Errorf("got %+v, want no page that another process owns", l.Pages)
	}
}

// TestDeliveryElsewhere has another process own the receiver of a page.
func TestDeliveryElsewhere(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	s.check(page)
	s.read("sold out")
	s.foreign["phone"] = true
	if m := s.explain(page, inspect.ExplainFilter{}).Changes[0].Matches[0]; m.Delivery != inspect.DeliveryElsewhere {
		t.Errorf("got match %+v, want %s", m, inspect.DeliveryElsewhere)
	}
	if l := s.list(inspect.ListFilter{}); len(l.Receivers) != 0 || len(l.Pages) != 1 {
		t.Errorf("got %+v, want the page without its receiver", l)
	}
}

func TestTally(t *testing.T) {
	s := newStore(t)
	s.subscribe(page, "ann", "sold out")
	s.read("in stock")
	s.check(page)
	s.read("sold out")
	s.check(page)
	s.answer(pipeline.FailStatus, "answered 500")
	want := inspect.Counts{Checks: 3, Failed: 1, Versions: 2, Changes: 1, Notifications: 1, Delivered: 1}
	sum := s.tally.Summary()
	if sum.Counts != want || s.tally.Counts() != want {
		t.Errorf("got %+v, want %+v", sum.Counts, want)
	}
	if len(sum.Documents) != 1 || sum.Documents[0].URL != page || sum.Documents[0].Counts != want || sum.Documents[0].LastError != "answered 500" {
		t.Errorf("got documents %+v, want %+v of one", sum.Documents, want)
	}

	s.check(page)
	s.read("sold out")
	if d := s.tally.Summary().Documents[0]; d.LastError != "" || d.Unchanged != 1 {
		t.Errorf("got %+v, want no error after a good check", d)
	}
	s.tally.Note(flow.Observation{Kind: flow.KindEnded, Page: page})
	if sum := s.tally.Summary(); len(sum.Documents) != 0 || sum.Documents == nil || sum.Checks != 4 {
		t.Errorf("got %+v, want the page out of the documents and its checks in the total", sum)
	}
}

// TestGauges sets each field of Counts to another number and looks for it in the gauges.
func TestGauges(t *testing.T) {
	var c inspect.Counts
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(int64(i + 1))
	}
	seen := make(map[float64]string)
	for _, g := range c.Gauges() {
		if !strings.HasPrefix(g.Name, "vokter_") || !strings.HasSuffix(g.Name, "_total") || !strings.HasSuffix(g.Help, ".") {
			t.Errorf("got %+v, want the name of a counter and a sentence", g)
		}
		if other := seen[g.Value]; other != "" {
			t.Errorf("%s and %s count the same", g.Name, other)
		}
		seen[g.Value] = g.Name
	}
	for i := range v.NumField() {
		switch v.Type().Field(i).Name {
		case "Failed", "Delivered", "Dead": // a Meter has them
			continue
		}
		if seen[float64(i+1)] == "" {
			t.Errorf("no gauge shows %s", v.Type().Field(i).Name)
		}
	}
}
