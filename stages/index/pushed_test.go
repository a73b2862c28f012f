package index

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// pushed is the outcome of a page that was pushed, whose whole text is text.
func pushed(text string) flow.Outcome {
	return flow.Outcome{
		Page: page, Kind: flow.OutcomeRead, Parts: 1, Document: whole, TextHash: "text:" + text, Packed: []byte(text), Extractor: "x/1",
		Time: t0, Body: &flow.Body{URL: page, Packed: []byte(text)},
	}
}

// push brings a page with one text.
func (b *bench) push(id, text string) []output {
	b.Helper()
	o := pushed(text)
	if d := b.p.Document(whole); d != nil && d.TextHash == o.TextHash {
		o.Kind, o.Against, o.Packed, o.Body = flow.OutcomeUnchanged, o.TextHash, nil, nil
	}
	return b.do(pushedPage{ID: id, Outcomes: []flow.Outcome{o}})
}

func TestPushedPagesAreVersions(t *testing.T) {
	b := newBench(t)
	b.push("0", "nobody hears")
	if len(b.out) != 0 {
		t.Fatalf("got %+v, want nothing of a page that nobody watches", b.out)
	}
	s := sub("c", pipeline.View{})
	s.Interval = pipeline.Never
	b.do(subscribe{Origin: "api", Subscription: s})
	none[requestCheck](b)
	if w := one[wakeAt](b); !w.Time.IsZero() {
		t.Errorf("got a wake at %v, want none", w.Time)
	}
	for i, text := range []string{"a", "b", "a"} {
		b.push(fmt.Sprint(i+1), text)
		v := one[newVersion](b)
		if v.Snapshot.N != uint64(i+1) || v.Snapshot.Previous != uint64(i) || v.Snapshot.Check != 0 || !v.Snapshot.Time.Equal(t0) {
			t.Errorf("got %+v, want version %d", v.Snapshot, i+1)
		}
		if r := one[record](b); r.Check != 0 || r.N != uint64(i+1) || r.Result != flow.OutcomeRead {
			t.Errorf("got %+v, want record %d", r, i+1)
		}
		one[pushRead](b)
		one[keepBody](b)
		none[requestCheck](b)
		none[checkDone](b)
	}
	b.push("4", "a")
	none[newVersion](b)
	if r := b.p.Quiet; r == nil || r.Result != flow.OutcomeUnchanged {
		t.Errorf("got %+v, want unchanged", r)
	}
	b.push("3", "c")
	if len(b.out) != 0 {
		t.Errorf("got %+v, want nothing of an ID that was there", b.out)
	}
	b.do(checkNow{})
	none[requestCheck](b)
	b.restart(wake{})
	none[requestCheck](b)
}

func TestPushedIDsAreRememberedForAWhile(t *testing.T) {
	b := newBench(t)
	b.do(replace{Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
	for i := range rememberedPushes + 1 {
		b.push(fmt.Sprint(i), "a")
	}
	if b.p.hasSeen("0") || !b.p.hasSeen("1") || len(b.p.Seen) != rememberedPushes*seenSize {
		t.Errorf("got %d bytes of IDs, want those of the last %d pages", len(b.p.Seen), rememberedPushes)
	}
}

// TestAPushOvertakesACheck pushes a page while it is fetched: the fetch may have seen an older
// one, so it says nothing, and the next looks at all of it.
func TestAPushOvertakesACheck(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("a")
	b.due()
	b.push("1", "b")
	if v := one[newVersion](b); v.Snapshot.N != 2 {
		t.Fatalf("got %+v, want version 2", v)
	}
	b.read("a")
	none[newVersion](b)
	one[checkDone](b)
	if b.p.BodyHash != "" || b.p.Document(whole).TextHash != "text:b" {
		t.Errorf("got %+v, want the pushed text to stand and no body for it", b.p)
	}
	if r := b.due(); r.BodyHash != "" || r.ETag != "" || r.Documents[0].TextHash != "text:b" {
		t.Errorf("got %+v, want a request without validators", r)
	}
	b.read("a")
	if v := one[newVersion](b); v.Snapshot.N != 3 {
		t.Errorf("got %+v, want version 3", v)
	}
	// The body that was pushed meanwhile is not the one that stands.
	b.due()
	b.push("2", "c")
	b.do(outcome{Outcome: flow.Outcome{Page: page, Incarnation: b.p.Incarnation, Check: b.p.Check, Nonce: b.p.Open.Nonce, Kind: flow.OutcomeUnchanged, Against: "body:a"}})
	if a := one[requestCheck](b); a.Request.BodyHash != "" || a.Request.Documents[0].TextHash != "" {
		t.Errorf("got %+v, want another look without hashes", a.Request)
	}
}

func TestAPushBetweenThePartsOfACheck(t *testing.T) {
	b := newBench(t)
	view := pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}
	other := flow.DocumentID(page, view)
	b.subscribe("c", pipeline.View{})
	b.subscribe("c", view)
	for len(b.p.Documents) < 2 || b.p.Open == nil || b.p.Open.Parts < 2 {
		b.read("0")
		b.due()
	}
	b.text(whole, "a", 0, 2)
	before := b.p.Document(whole).N
	o := pushed("b")
	o.Parts = 2
	gone := flow.Outcome{Page: page, Kind: flow.OutcomeFailed, Class: pipeline.FailSelectorGone, Reason: "why", Parts: 2, Part: 1, Document: other, Time: t0}
	b.do(pushedPage{ID: "1", Outcomes: []flow.Outcome{o, gone}})
	if h := one[healthEvent](b); h.Event != pipeline.HealthSelectorGone || h.Document != other {
		t.Errorf("got %+v", h)
	}
	if got := b.p.Document(whole).N; got != before+1 {
		t.Errorf("got version %d, want %d", got, before+1)
	}
	last := b.outcome(flow.OutcomeRead)
	last.Document, last.Part, last.Parts, last.TextHash, last.BodyHash = other, 1, 2, "text:z", "body:a"
	last.Body = &flow.Body{URL: page}
	b.found(last)
	one[checkDone](b)
	one[keepBody](b)
	if d := b.p.Document(whole); d.TextHash != "text:b" || b.p.Body != b.p.Check || d.Body == b.p.Body {
		t.Errorf("got %+v with body %d, want the pushed text not to be in the body of the check", d, b.p.Body)
	}
	first := b.p.Pushes
	gone.Part, gone.Parts = 0, 1
	b.do(pushedPage{ID: "2", Outcomes: []flow.Outcome{gone}})
	if h := one[healthEvent](b); b.p.Pushes != first+1 || h.ID == flow.HealthID(h.Event, b.p.Incarnation+"/"+other, 0) {
		t.Errorf("got %+v, want an ID of its own", h)
	}
}

func TestIntervalNeverAndOthers(t *testing.T) {
	b := newBench(t)
	b.do(replace{Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
	none[requestCheck](b)
	b.subscribe("c", pipeline.View{})
	one[requestCheck](b)
	b.cancel("c")
	if b.p.Open != nil || b.p.Fetched() {
		t.Errorf("got %+v, want nothing outstanding", b.p)
	}
	b.do(replace{Origin: "yaml", Keep: true})
	one[requestCheck](b)
	// It is given up and asked for again, with another interval: that is another entry.
	b.rules.Expire.After = 1
	b.failed(pipeline.FailDNS)
	if b.p.Incarnation != "" {
		t.Fatalf("got %+v, want it expired", b.p)
	}
	b.do(replace{Origin: "yaml", Keep: true})
	if b.p.Incarnation != "" {
		t.Errorf("got %+v, want it expired still", b.p)
	}
	b.do(replace{Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
	if b.p.Incarnation == "" || b.p.Fetched() || len(all[requestCheck](b.out)) > 0 {
		t.Errorf("got %+v, want it alive and not fetched", b.p)
	}
	b.do(replace{Origin: "yaml"})
	if b.p.URL != "" {
		t.Errorf("got %+v, want nothing left", b.p)
	}
}

// reader is a Read whose texts are the lines of a page, one for each document.
func reader(by string) Read {
	return func(_ context.Context, r flow.Request, p pipeline.Pushed) []flow.Outcome {
		var os []flow.Outcome
		for i, d := range r.Documents {
			o := flow.Outcome{
				Page: r.Page, Incarnation: r.Incarnation, Part: i, Parts: len(r.Documents), Document: d.ID, Time: p.Time,
				Kind: flow.OutcomeRead, TextHash: by + string(p.Body), Extractor: by, Packed: flow.PackText(string(p.Body) + "\n"),
			}
			if string(p.Body) == "unreadable" {
				o = flow.Outcome{Kind: flow.OutcomeFailed, Class: pipeline.FailUnreadable, Reason: "noise", Parts: len(r.Documents), Part: i, Document: d.ID}
			}
			if r.Rebase != nil {
				old, _ := flow.UnpackText(r.Rebase.Packed)
				o.Rebased = &flow.Rebased{TextHash: by + old, Extractor: by, Packed: flow.PackText(old + "\n")}
			}
			os = append(os, o)
		}
		packed, _ := flow.PackBody(p.Body)
		os[len(os)-1].Body = &flow.Body{URL: p.URL, ContentType: p.ContentType, Packed: packed}
		return os
	}
}

// hand brings a page.
func (d *desk) hand(id, body string) error {
	d.Helper()
	m, err := flow.TakenMessage(pipeline.Pushed{URL: page, ContentType: "text/plain", Body: []byte(body), ID: id, Time: d.now})
	if err != nil {
		d.Fatal(err)
	}
	d.n++
	m.Position = fmt.Sprintf("S/documents/0/%d", d.n)
	err = d.store.Handle(context.Background(), d.stage, m)
	d.out = d.store.Take()
	return err
}

func TestAPushedPageFromIngestToSnapshot(t *testing.T) {
	d := newDesk(t, Config{Read: reader("lines/1")})
	if err := d.hand("0", "nobody"); err != nil || len(d.store.Names(page)) != 0 {
		t.Fatalf("got %v and %v, want nothing kept", err, d.store.Names(page))
	}
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
	for _, body := range []string{"a", "b"} {
		if err := d.hand(body, body); err != nil {
			t.Fatal(err)
		}
		s, err := flow.SnapshotFrom(d.out[0])
		if err != nil || s.New != body+"\n" {
			t.Fatalf("got %+v, %v", s, err)
		}
	}
	if err := d.hand("b", "c"); err != nil || len(d.out) != 0 {
		t.Errorf("got %v, %v, want nothing of a repeat", d.out, err)
	}
	err := d.hand("x", "unreadable")
	if class, _ := failure.ClassOf(err); class != failure.ClassPermanent || len(d.out) != 0 {
		t.Errorf("got %v, want a permanent error", err)
	}
	if want := []string{"unwatched", "version", "pushed", "version", "pushed", "repeated"}; !slices.Equal(d.notes, want) {
		t.Errorf("got %v, want %v", d.notes, want)
	}
	// Other rules read it now: the page as it was is read by them too, and nothing differs but
	// what is new.
	d.restart(Config{Read: reader("lines/2")})
	if err := d.hand("c", "c"); err != nil {
		t.Fatal(err)
	}
	s, err := flow.SnapshotFrom(d.out[0])
	if err != nil || s.Previous != 2 || s.Old != "b\n" || s.New != "c\n" || len(d.out) != 1 {
		t.Errorf("got %+v, %v of %v", s, err, d.types())
	}
	d.restart(Config{})
	if err := d.hand("d", "d"); err == nil {
		t.Error("it was read without a reader")
	}
	d.now = d.now.Add(time.Hour)
	if got := d.stage.Overdue(); len(got) != 0 {
		t.Errorf("%v is overdue", got)
	}
}

func TestNothingIsOverdueThatIsOnlyPushed(t *testing.T) {
	d := newDesk(t, Config{Checks: 1})
	d.stage.Expect(page)
	keep := func(every pipeline.Interval) {
		d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml", Keep: true, KeepInterval: every})
	}
	keep(pipeline.Interval{})
	if d.request.Page != page || d.stage.Finished() {
		t.Fatalf("got %+v, want a request to wait for", d.request)
	}
	keep(pipeline.Never)
	d.now = d.now.Add(time.Hour)
	if got := d.stage.Overdue(); len(got) != 0 || !d.stage.Finished() {
		t.Errorf("%v is overdue or waited for", got)
	}
}

func TestWhoAsksForNoChecksIsRemembered(t *testing.T) {
	b := newBench(t)
	b.rules.Expire.After = 1
	b.do(replace{Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
	b.subscribe("c", pipeline.View{})
	o := b.outcome(flow.OutcomeFailed)
	o.Class, o.Reason = pipeline.FailDNS, "why"
	b.do(outcome{Outcome: o, Existing: b.standing("")})
	if b.p.Incarnation != "" {
		t.Fatalf("got %+v, want it expired", b.p)
	}
	b.resume("", "")
	b.cancel("c")
	if b.p.Incarnation == "" || b.p.Fetched() {
		t.Errorf("got %+v, want it kept and not fetched, as before", b.p)
	}
	b.subscribe("c", pipeline.View{})
	b.do(replace{Origin: "yaml", Existing: b.standing("")})
	if len(b.p.Unasked) != 0 {
		t.Errorf("got %v, who keeps nothing any more", b.p.Unasked)
	}
}
