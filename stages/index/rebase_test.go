package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// extractor makes the text of a document from a body. What stands behind "#" is no text.
type extractor struct {
	name string
	read func(body string) string
}

var (
	// narrow takes what stands before the bar, wide what stands on both sides, and equal
	// differs from narrow in its name alone.
	narrow = extractor{"r/1", func(body string) string { return body[:strings.IndexAny(body+"|", "|#")] + "\n" }}
	wide   = extractor{"r/2", func(body string) string {
		s, _, _ := strings.Cut(body, "#")
		return strings.ReplaceAll(s, "|", " ") + "\n"
	}}
	equal = extractor{"r/3", narrow.read}
)

// site is a page as fetch sees it.
type site struct {
	*desk
	body   string
	rules  extractor
	tooBig bool
	// snapshots tell what was compared, "N<Previous:old→new"; events the health events.
	snapshots, events []string
	asked             int // requests with a body
}

func newSite(t *testing.T, cfg Config, views ...pipeline.View) *site {
	s := &site{desk: newDesk(t, cfg)}
	if len(views) == 0 {
		views = []pipeline.View{{}}
	}
	for i, v := range views {
		sub := pipeline.Subscription{URL: page, Client: fmt.Sprint(i), Keywords: []string{"stock"}, Sinks: []string{"s"}, View: v}
		s.command(flow.TypeSubscribe, flow.SubscribeCommand{Origin: "api", Subscription: sub})
	}
	return s
}

// outcomes are what fetch answers the last request.
func (s *site) outcomes() []flow.Outcome {
	s.Helper()
	r := s.request
	base := flow.Outcome{Page: page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Time: s.now, BodyHash: "b" + text.Hash(s.body), Extractor: s.rules.name}
	if r.BodyHash == base.BodyHash {
		base.Kind, base.Against = flow.OutcomeUnchanged, r.BodyHash
		return []flow.Outcome{base}
	}
	var os []flow.Outcome
	var kept *flow.Body
	for i, d := range r.Documents {
		o := base
		content := s.rules.read(s.body) + strings.Join(d.View.Ignore, "")
		o.Part, o.Parts, o.Document, o.TextHash, o.Title = i, len(r.Documents), d.ID, text.Hash(content), s.rules.name
		if !s.tooBig && (r.KeepBody || o.TextHash != d.TextHash) {
			kept = &flow.Body{URL: page, ContentType: "text/x", ContentLanguage: "en", Packed: flow.PackText(s.body)}
		}
		if o.TextHash == d.TextHash {
			o.Kind, o.Against = flow.OutcomeUnchanged, d.TextHash
		} else {
			o.Kind, o.Packed = flow.OutcomeRead, flow.PackText(content)
			if r.Rebase != nil {
				o.Rebased = s.rebase(*r.Rebase, d)
			}
		}
		os = append(os, o)
	}
	os[len(os)-1].Body = kept
	return os
}

func (s *site) rebase(b flow.Body, d flow.RequestDocument) *flow.Rebased {
	s.Helper()
	body, err := flow.UnpackText(b.Packed)
	if err != nil || b.URL != page || b.ContentType != "text/x" || b.ContentLanguage != "en" {
		s.Errorf("got the body %+v, %v", b, err)
	}
	if strings.Contains(body, "!") {
		return &flow.Rebased{Failed: "it cannot be read"}
	}
	content := s.rules.read(body) + strings.Join(d.View.Ignore, "")
	return &flow.Rebased{TextHash: text.Hash(content), Title: s.rules.name, Extractor: s.rules.name, Packed: flow.PackText(content)}
}

// bring handles m and notes what came of it.
func (s *site) bring(m flow.Message) {
	s.Helper()
	s.handle(m)
	s.note()
}

func (s *site) note() {
	s.Helper()
	for _, m := range s.out {
		switch m.Type {
		case flow.TypeRequest:
			if s.request.Rebase != nil {
				s.asked++
			}
		case flow.TypeSnapshot:
			n, err := flow.SnapshotFrom(m)
			if err != nil {
				s.Fatal(err)
			}
			s.snapshots = append(s.snapshots, strings.ReplaceAll(fmt.Sprintf("%d<%d:%s→%s", n.N, n.Previous, n.Old, n.New), "\n", ""))
		case flow.TypeHealth:
			h, err := flow.HealthFrom(m)
			if err != nil {
				s.Fatal(err)
			}
			s.events = append(s.events, string(h.Event)+" "+h.Document+" "+h.Reason)
		}
	}
}

// look lets the page be checked as it is now, by the rules of now, until nothing is asked
// for at once.
func (s *site) look(body string, r extractor) {
	s.Helper()
	s.body, s.rules = body, r
	if s.page().Open == nil {
		s.wake()
	}
	s.answerAll()
}

// answerAll answers requests until none is left.
func (s *site) answerAll() {
	s.Helper()
	for range 4 {
		check := s.request.Check
		for _, o := range s.outcomes() {
			s.bring(o.Message())
		}
		if s.request.Check == check {
			return
		}
	}
	s.Fatal("the page does not come to rest")
}

func (s *site) page() Page {
	s.Helper()
	p, err := Load(s.state())
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// standing is the version that stands of a document, and its text.
func (s *site) standing(document string) (StoredVersion, string) {
	s.Helper()
	p := s.page()
	v, ok, err := LoadVersion(s.state(), document, p.Document(document).N)
	if err != nil || !ok {
		s.Fatalf("no version stands (%v)", err)
	}
	content, err := flow.UnpackText(v.Packed)
	if err != nil || text.Hash(content) != v.TextHash || v.TextHash != p.Document(document).TextHash {
		s.Errorf("got %+v with the text %q, %v", v, content, err)
	}
	packed, _ := s.store.Value(page, tokensName+document)
	if want := text.PackTokens(text.Analyze(content)); !slices.Equal(packed, want) {
		s.Errorf("the tokens of %q are others", content)
	}
	return v, content
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestAnUpgradeAlertsNobody(t *testing.T) {
	s := newSite(t, Config{})
	s.look("stock 5|sale#1", narrow)
	s.look("stock 5|sale#2", narrow) // another body, and the same text
	s.look("stock 5|sale#3", wide)
	want(t, "after the upgrade", s.snapshots, "1<0:→stock 5")
	if v, content := s.standing(whole); content != "stock 5 sale\n" || v.Extractor != "r/2" || v.Title != "r/2" || v.Check != 1 {
		t.Errorf("got %q, %+v", content, v)
	}
	s.look("stock 4|sale#4", wide)
	s.look("stock 4|sold out#4", wide)
	want(t, "after changes", s.snapshots, "1<0:→stock 5", "2<1:stock 5 sale→stock 4 sale", "3<2:stock 4 sale→stock 4 sold out")
	s.look("stock 4|sold out#5", narrow) // the earlier extractor again
	s.look("stock 3|sold out#5", narrow)
	want(t, "after the way back", s.snapshots[3:], "4<3:stock 4→stock 3")
	want(t, "events", s.events)
	if s.asked != 2 {
		t.Errorf("the page was asked for with a body %d times, want twice", s.asked)
	}
}

// What only later rules see is compared with a body that is at most a day old when another
// came since.
func TestTheBodyIsRenewed(t *testing.T) {
	s := newSite(t, Config{})
	s.look("stock 5|sale", narrow)
	s.look("stock 5|sold", narrow)
	if s.request.KeepBody {
		t.Error("a body is asked for that is hardly newer")
	}
	s.now = s.now.Add(bodyAge)
	s.look("stock 5|gone", narrow)
	if !s.request.KeepBody {
		t.Error("a later body is not asked for")
	}
	s.look("stock 5|gone#", wide)
	s.look("stock 5|sale#", wide)
	want(t, "snapshots", s.snapshots, "1<0:→stock 5", "2<1:stock 5 gone→stock 5 sale")

	s.tooBig = true
	s.now = s.now.Add(bodyAge)
	s.look("stock 5|sale##", wide)
	s.look("stock 5|sale#", wide)
	if s.request.KeepBody {
		t.Error("a body that is too large is asked for each time")
	}
	s.now = s.now.Add(-2 * bodyAge) // the clock is set back
	s.bring(flow.Message{ID: "now", Key: page, Type: flow.TypeCheckNow})
	if !s.request.KeepBody {
		t.Error("a later body is not asked for once the clock was set back")
	}
}

func TestRulesThatMakeTheSameText(t *testing.T) {
	s := newSite(t, Config{})
	s.look("stock 5#1", narrow)
	s.look("stock 5#2", equal)
	if d := s.page().Documents[0]; d.Extractor != "r/3" || s.asked != 0 {
		t.Errorf("got %+v, and %d requests with a body", d, s.asked)
	}
	s.look("stock 4", equal)
	want(t, "snapshots", s.snapshots, "1<0:→stock 5", "2<1:stock 5→stock 4")
}

// Without the body there is a new baseline, which is told once.
func TestAnUpgradeWithoutABody(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		tooBig bool
		reason string
	}{
		"too large":      {"stock 5|sale", true, "its text was extracted by r/1 and is now extracted by r/2; the body of its last version is not stored"},
		"cannot be read": {"stock 5|sale!", false, "its text was extracted by r/1 and is now extracted by r/2; it cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, Config{})
			s.tooBig = tc.tooBig
			s.look(tc.body, narrow)
			s.tooBig = false
			s.look("stock 4|sale", wide)
			s.look("stock 3|sale", wide)
			want(t, "snapshots", s.snapshots, "1<0:→stock 5", "2<0:→stock 4 sale", "3<2:stock 4 sale→stock 3 sale")
			want(t, "events", s.events, "rebaselined "+whole+" "+tc.reason)
			s.look("stock 3|sale#", narrow)
			s.look("stock 2|sale#", narrow)
			want(t, "snapshots of the next one", s.snapshots[3:], "4<3:stock 3→stock 2")
			want(t, "events", s.events[1:])
		})
	}
}

// Texts of a reader that names no extractor are compared as they are.
func TestAReaderWithoutAnExtractor(t *testing.T) {
	s := newSite(t, Config{})
	s.look("stock 5|sale", extractor{"", narrow.read})
	s.look("stock 4|sale", wide)
	want(t, "snapshots", s.snapshots[1:], "2<1:stock 5→stock 4 sale")
	if got := s.page().Documents[0].Extractor; len(s.events) != 0 || got != "r/2" {
		t.Errorf("got events %q, extractor %q", s.events, got)
	}
}

func TestAnUpgradeOfSeveralDocuments(t *testing.T) {
	marked := pipeline.View{Ignore: []string{"x"}}
	s := newSite(t, Config{}, pipeline.View{}, marked)
	s.look("stock 5|sale", narrow)
	s.look("stock 4|sale", wide)
	slices.Sort(s.snapshots)
	want(t, "snapshots", s.snapshots, "1<0:→stock 5", "1<0:→stock 5x", "2<1:stock 5 salex→stock 4 salex", "2<1:stock 5 sale→stock 4 sale")
	want(t, "events", s.events)
	if s.asked != 1 {
		t.Errorf("the page was asked for with a body %d times, want once", s.asked)
	}
	// One of them is cancelled, the other one's text stays where it can be made anew.
	s.cancel("1")
	s.look("stock 4|sale#", narrow)
	want(t, "after the way back", s.snapshots[4:])
	if _, content := s.standing(whole); content != "stock 4\n" {
		t.Errorf("got %q", content)
	}
}

// A text that waits to be confirmed is not of the body that is kept, and waits anew after
// an upgrade.
func TestAnUpgradeWhileATextWaits(t *testing.T) {
	s := newSite(t, Config{}, pipeline.View{Confirm: 3})
	s.look("stock 5|sale", narrow)
	at := s.page().BodyAt
	s.now = s.now.Add(bodyAge)
	s.look("stock 4|sale", narrow)
	if got := s.page().BodyAt; !got.Equal(at) {
		t.Errorf("the body of a text that waits is kept since %v", got)
	}
	s.look("stock 4|sale", narrow)
	s.look("stock 4|sale", wide)
	want(t, "after the upgrade", s.snapshots, "1<0:→stock 5")
	if _, content := s.standing(s.page().Documents[0].ID); content != "stock 5 sale\n" || s.page().Documents[0].Candidate.Stood != 1 {
		t.Errorf("got %q, and a text that stood for %d checks", content, s.page().Documents[0].Candidate.Stood)
	}
	s.look("stock 4|sale", wide)
	want(t, "after two checks", s.snapshots[1:])
	s.look("stock 4|sale", wide)
	want(t, "after three checks", s.snapshots[1:], "2<1:stock 5 sale→stock 4 sale")
	s.look("stock 3|sale", wide)
	s.look("stock 3|sale", wide)
	s.look("stock 3|sale", extractor{"r/4", wide.read}) // they make the same of it
	s.look("stock 3|sale", extractor{"r/4", wide.read})
	want(t, "after two checks by other rules", s.snapshots[2:])
	s.look("stock 3|sale", extractor{"r/4", wide.read})
	want(t, "after three checks by other rules", s.snapshots[2:], "3<2:stock 4 sale→stock 3 sale")
}

// The body goes with the page, and with the last text that is in it.
func TestTheBodyGoes(t *testing.T) {
	kept := func(s *site) bool { return slices.Contains(s.store.Names(page), bodyName) }
	s := newSite(t, Config{Expire: pipeline.Expire{After: 1, Retry: -1}})
	s.look("stock 5", narrow)
	if !kept(s) {
		t.Fatal("no body is kept")
	}
	s.tooBig = true
	s.look("stock 5#", wide)
	if !kept(s) {
		t.Error("the body of a text that stands is gone")
	}
	s.look("stock 4", wide)
	if kept(s) || s.page().Body != 0 {
		t.Error("the body is kept, though no text is in it")
	}
	s.tooBig = false
	s.look("stock 3", wide)
	if !kept(s) {
		t.Error("no body is kept")
	}
	s.wake()
	s.fail(pipeline.FailDNS)
	if kept(s) {
		t.Error("a page that expired keeps its body")
	}
	s.subscribe("again")
	s.look("stock 2", wide)
	s.cancel("again")
	if !kept(s) {
		s.cancel("0")
	}
	if kept(s) {
		t.Error("a page that was cancelled keeps its body")
	}
}

// An upgrade may be broken off at any step: the process ends before an outcome comes, or
// behind it.
func TestAnUpgradeThroughCrashes(t *testing.T) {
	type look struct {
		body  string
		rules extractor
	}
	looks := []look{{"stock 5|sale", narrow}, {"stock 5|sale#", narrow}, {"stock 4|sale", wide}, {"stock 4|sold", wide}, {"stock 4|sold#", narrow}, {"stock 3|sold#", narrow}}
	for crash := range 20 {
		s := newSite(t, Config{})
		step := 0
		for _, l := range looks {
			s.body, s.rules = l.body, l.rules
			if s.page().Open == nil {
				s.wake()
			}
			for rounds := 0; s.page().Open != nil; rounds++ {
				if rounds > 6 {
					t.Fatal("the page does not come to rest")
				}
				os := s.outcomes()
				if step == crash {
					s.restart(Config{})
					s.bring(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})
				}
				for _, o := range os { // also those of before
					step++
					s.bring(o.Message())
					if step == crash {
						s.restart(Config{})
						s.bring(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})
					}
				}
			}
		}
		want(t, fmt.Sprint("a crash at ", crash), s.snapshots, "1<0:→stock 5", "2<1:stock 5 sale→stock 4 sale", "3<2:stock 4 sale→stock 4 sold", "4<3:stock 4→stock 3")
		want(t, fmt.Sprint("events with a crash at ", crash), s.events)
	}
}
