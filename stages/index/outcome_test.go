package index

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var main = pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}

func TestTheFirstVersionIsTheBaseline(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	r := one[requestCheck](b).Request
	if r.Check != 1 || r.BodyHash != "" || r.ETag != "" || len(r.Documents) != 1 || r.Documents[0].TextHash != "" {
		t.Errorf("got request %+v, want a full one, number 1", r)
	}
	if got, want := r.NotAfter, b.now.Add(2*time.Minute); got != want {
		t.Errorf("got NotAfter %v, want %v", got, want)
	}
	if w := one[wakeAt](b); !w.AtStart || !w.Time.After(r.NotAfter.Add(30*time.Second)) {
		t.Errorf("got wake %+v, want it behind the last moment of the fetch, also at start", w)
	}
	b.read("A")
	v := one[newVersion](b)
	if s := v.Snapshot; s.N != 1 || s.Previous != 0 || s.Document != whole || s.Check != 1 || s.TextHash != "text:A" {
		t.Errorf("got snapshot %+v, want version 1 without a previous one", s)
	}
	if c := one[checkDone](b); c.Unchanged || c.Class != "" {
		t.Errorf("got %+v, want a check that found something", c)
	}
	if w := one[wakeAt](b); w.AtStart || w.Time.Sub(b.now) > 10*time.Minute {
		t.Errorf("got wake %+v, want the next check within the interval", w)
	}
}

func TestVersionsFollowTexts(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	for i, text := range []string{"B", "A", "B", "A"} {
		r := b.due()
		if r.Check != uint64(i+2) || r.BodyHash == "" || r.ETag == "" || r.Documents[0].TextHash == "" {
			t.Fatalf("got request %+v, want number %d with validators and hashes", r, i+2)
		}
		b.read(text)
		s := one[newVersion](b).Snapshot
		if s.N != uint64(i+2) || s.Previous != uint64(i+1) {
			t.Errorf("%s: got version %d after %d", text, s.N, s.Previous)
		}
	}
	if d := b.p.Document(whole); d.N != 5 {
		t.Errorf("got %+v, want version 5", d)
	}
	if got := one[prune](b); got != (prune{whole, b.rules.Keep}) {
		t.Errorf("got %+v, want old versions dropped", got)
	}
	b.due()
	b.read("A")
	none[newVersion](b)
	if !one[checkDone](b).Unchanged {
		t.Error("an equal text counts as news")
	}
}

func TestUnchangedMustBeAgainstWhatStands(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.unchanged()
	if !one[checkDone](b).Unchanged {
		t.Error("want the check to count")
	}
	b.due()
	o := b.outcome(flow.OutcomeUnchanged)
	o.Against = "body:Z"
	b.do(outcome{Outcome: o})
	none[checkDone](b)
	r := one[requestCheck](b).Request
	if r.Check != o.Check+1 || r.BodyHash != "" || r.ETag != "" || r.Documents[0].TextHash != "" {
		t.Errorf("got %+v, want a new full request", r)
	}
	// A fetch that says so again is broken, and asking on would never end.
	b.unchanged()
	if c := one[checkDone](b); c.Class != pipeline.FailUnreadable {
		t.Errorf("got %+v, want a failed check", c)
	}
	none[requestCheck](b)
}

func TestUnchangedPartMustBeAgainstWhatStands(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	part := func(against string) {
		o := b.outcome(flow.OutcomeUnchanged)
		o.Document, o.Parts, o.Against, o.BodyHash = whole, 1, against, "body:A2"
		b.do(outcome{Outcome: o})
	}
	b.due()
	part("text:A")
	if !one[checkDone](b).Unchanged || b.p.BodyHash != "body:A2" {
		t.Errorf("got %+v, want unchanged and the new body's hash", b.out)
	}
	b.due()
	part("text:Z")
	if r := one[requestCheck](b).Request; r.BodyHash != "" || r.Documents[0].TextHash != "" {
		t.Errorf("got %+v, want a full request", r)
	}
	part("text:Z")
	if c := one[checkDone](b); c.Class != pipeline.FailUnreadable {
		t.Errorf("got %+v, want a failed check", c)
	}
	none[requestCheck](b)
}

func TestOnlyTheOutstandingCheckCounts(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	good := b.outcome(flow.OutcomeRead)
	good.Document, good.Parts, good.TextHash, good.BodyHash = whole, 1, "text:B", "body:B"
	for name, change := range map[string]func(*flow.Outcome){
		"an older check":        func(o *flow.Outcome) { o.Check-- },
		"a check to come":       func(o *flow.Outcome) { o.Check++ },
		"another request":       func(o *flow.Outcome) { o.Nonce = "another" },
		"no request":            func(o *flow.Outcome) { o.Nonce = "" },
		"another life":          func(o *flow.Outcome) { o.Incarnation = "other" },
		"too many parts":        func(o *flow.Outcome) { o.Parts = 1 << 40 },
		"a part beyond":         func(o *flow.Outcome) { o.Part = 1 },
		"a part before":         func(o *flow.Outcome) { o.Part = -1 },
		"a read page, no parts": func(o *flow.Outcome) { o.Parts = 0 },
		"a negative number":     func(o *flow.Outcome) { o.Parts = -1 },
	} {
		o := good
		change(&o)
		if out := b.do(outcome{Outcome: o}); len(out) != 0 {
			t.Errorf("%s: got %+v, want nothing", name, out)
		}
	}
	b.do(outcome{Outcome: good})
	one[newVersion](b)
	if out := b.do(outcome{Outcome: good}); len(out) != 0 {
		t.Errorf("a duplicate: got %+v, want nothing", out)
	}
}

func TestPartsCountOnceEach(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.subscribe("c", main)
	b.read("A") // the first check was asked for before there was a second document
	if r := one[requestCheck](b).Request; len(r.Documents) != 2 || r.BodyHash != "" {
		t.Fatalf("got %+v, want a full request for both documents at once", r)
	}
	id := flow.DocumentID(page, main)
	b.text(whole, "B", 0, 2)
	one[newVersion](b)
	none[checkDone](b)
	if b.p.BodyHash != "" {
		t.Error("a body stands before all its texts were read")
	}
	if out := b.text(whole, "B", 0, 2); len(out) != 0 {
		t.Errorf("a repeated part: got %+v", out)
	}
	if out := b.unchanged(); len(out) != 0 {
		t.Errorf("an outcome of the whole page among parts: got %+v", out)
	}
	b.text(id, "B", 1, 2)
	if s := one[newVersion](b).Snapshot; s.Document != id || s.N != 1 {
		t.Errorf("got %+v, want version 1 of the second document", s)
	}
	one[checkDone](b)
	if b.p.BodyHash != "body:B" {
		t.Errorf("got body hash %q, want that of the body that was read", b.p.BodyHash)
	}
}

func TestPartsOfTwoBodiesStandForNeither(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.subscribe("c", main)
	b.read("A")
	b.text(whole, "A", 0, 2) // of a fetch that ended in another process
	o := b.outcome(flow.OutcomeRead)
	o.Document, o.Part, o.Parts, o.TextHash, o.BodyHash, o.ETag = flow.DocumentID(page, main), 1, 2, "text:B", "body:B", "etag:B"
	o.Packed, o.Body = []byte("B"), &flow.Body{URL: page}
	b.found(o)
	one[checkDone](b)
	none[keepBody](b)
	// Were the hash of B sent, the page would be unchanged, and A would stand for ever.
	if r := b.due(); r.BodyHash != "" || r.ETag != "" || r.Documents[0].TextHash == "" {
		t.Errorf("got %+v, want hashes of texts and no validators", r)
	}
}

func TestFailedChecksLeaveTheBaseline(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	for i := range 3 {
		if r := b.due(); r.Failures != i {
			t.Errorf("the request speaks of %d failures, want %d", r.Failures, i)
		}
		b.failed(pipeline.FailTimeout)
		if c := one[checkDone](b); c.Class != pipeline.FailTimeout || c.Reason != "why" || c.Unchanged {
			t.Errorf("got %+v, want the failure", c)
		}
		if b.p.Failures != i+1 || b.p.BodyHash != "body:A" {
			t.Errorf("got %d failures, body %q", b.p.Failures, b.p.BodyHash)
		}
	}
	b.due()
	b.unchanged()
	if b.p.Failures != 0 || b.p.Trouble != "" {
		t.Errorf("got %d failures, trouble %q after a success", b.p.Failures, b.p.Trouble)
	}
}

func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct{ wish, want time.Duration }{
		"longer than the interval": {time.Hour, time.Hour},
		"beyond reason":            {100 * time.Hour, 24 * time.Hour},
	} {
		b := newBench(t)
		b.subscribe("c", pipeline.View{})
		o := b.outcome(flow.OutcomeFailed)
		o.Class, o.RetryAfter = pipeline.FailBusy, c.wish
		b.do(outcome{Outcome: o})
		until := b.now.Add(c.want)
		if w := one[wakeAt](b); w.Time != until {
			t.Errorf("%s: got %v, want %v", name, w.Time, until)
		}
		b.subscribe("d", main) // a new document must wait, too
		none[requestCheck](b)
		b.do(checkNow{})
		none[requestCheck](b)
		b.due()
		if b.now.Before(until) {
			t.Errorf("%s: asked at %v, before %v", name, b.now, until)
		}
	}
}

func TestOneDocumentFailsAlone(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.subscribe("c", main)
	id := flow.DocumentID(page, main)
	b.read("A")
	b.text(whole, "A", 0, 2)
	b.text(id, "A", 1, 2)
	b.due()
	o := b.outcome(flow.OutcomeFailed)
	o.Document, o.Part, o.Parts, o.Class, o.BodyHash = id, 0, 2, pipeline.FailSelectorGone, "body:B"
	b.do(outcome{Outcome: o})
	b.text(whole, "B", 1, 2)
	if s := one[newVersion](b).Snapshot; s.Document != whole || s.N != 2 {
		t.Errorf("got %+v, want version 2 of the page", s)
	}
	if c := one[checkDone](b); c.Class != pipeline.FailSelectorGone || c.Unchanged {
		t.Errorf("got %+v, want a failed check", c)
	}
	if d := b.p.Document(id); d.N != 1 || d.TextHash != "text:A" {
		t.Errorf("got %+v, want the baseline", d)
	}
	if b.p.Failures != 0 {
		t.Errorf("got %d failures of a page that was reached", b.p.Failures)
	}
	if r := b.due(); r.BodyHash != "" || r.ETag != "" || r.Documents[0].TextHash == "" || r.Documents[1].TextHash == "" {
		t.Errorf("got %+v, want no validators but the texts' hashes", r)
	}
}

// blocks makes a block of each part of a body.
var blocks = extractor{"r/3", func(body string) string { return strings.ReplaceAll(body, "|", "\n") + "\n" }}

// TestConfirmBesideAnAdvertisement: words that change at every check keep no other news from being confirmed. When they
// rest, they are news themselves.
func TestConfirmBesideAnAdvertisement(t *testing.T) {
	s := newSite(t, Config{}, pipeline.View{Confirm: 2})
	ads := strings.Fields("shoes wine figs honey lamps oil goats maps")
	look := func(ad, news string) { s.look("we sell "+ad+"|the house stands here|"+news, blocks) }
	for _, ad := range ads {
		look(ad, "no news")
	}
	look("bread", "no news") // the words are restless, and the first text without them stands
	made := len(s.snapshots)
	for _, ad := range ads[:4] {
		look(ad, "no news")
	}
	want(t, "while only the advertisement changes", s.snapshots[made:])
	look("milk", "argus came")
	look("salt", "argus came")
	if got := s.snapshots[made:]; len(got) != 1 || !strings.HasSuffix(got[0], "we sell saltthe house stands hereargus came") {
		t.Errorf("got %q, want the news", got)
	}
	look("pepper", "argus came")
	look("pepper", "argus came")
	if got := s.snapshots[made+1:]; len(got) != 1 || !strings.Contains(got[0], "→we sell pepper") {
		t.Errorf("got %q, want the advertisement that stands", got)
	}
}
