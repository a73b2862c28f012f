package index

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// pauseUntil pauses the subscriptions of a client until a time.
func (b *bench) pauseUntil(client string, until time.Time) {
	b.Helper()
	b.do(pause{Client: client, Until: until, Existing: b.standing(client), Expired: b.expired(client)})
	decided(b, 0)
}

// woken brings the wake at the time at, and the command that follows from it.
func (b *bench) woken(at time.Time) {
	b.Helper()
	b.now = at.Add(-time.Second)
	b.do(wake{})
	if len(all[resumeDue](b.out)) > 0 {
		b.do(resume{Due: true, Expired: b.expired("")})
	}
}

// TestPauseIsReplaced: another pause sets another end, a resume ends it, and the wake of the one
// before does nothing.
func TestPauseIsReplaced(t *testing.T) {
	b := newBench(t)
	b.subscribe("a", pipeline.View{})
	hour, day := t0.Add(time.Hour), t0.AddDate(0, 0, 1)
	b.pauseUntil("a", hour)
	b.pauseUntil("a", day)
	b.woken(hour)
	if w := one[wakeAt](b); len(b.standing("")) > 0 || !w.Time.Equal(day) {
		t.Fatalf("got %+v and a wake at %v, want the later end", b.standing(""), w.Time)
	}
	b.pauseUntil("a", time.Time{})
	b.woken(day)
	if len(b.standing("")) > 0 {
		t.Fatal("a pause without an end ended")
	}
	b.pauseUntil("a", day.Add(time.Hour))
	b.resume("a", "")
	b.pauseUntil("a", time.Time{})
	b.woken(day.Add(time.Hour))
	if len(b.standing("")) > 0 {
		t.Error("a pause that was resumed ended another one")
	}
}

// TestBeginsPaused: a subscription of a list begins paused, stays so with other settings and at the next start,
// and begins to be watched when the list does not pause it any more, or when it is resumed.
func TestBeginsPaused(t *testing.T) {
	b := newBench(t)
	paused := sub("a", pipeline.View{})
	paused.Paused = true
	other := paused
	other.Severity = pipeline.SeverityInfo
	for _, s := range []pipeline.Subscription{paused, paused, other} {
		b.replace("yaml", false, s)
		if x := b.expired("a"); len(b.standing("")) > 0 || len(x) != 1 || x[0].End != flow.EndPaused || x[0].Subscription.Severity != s.Severity || !b.p.Rests() {
			t.Fatalf("got %+v and %+v, want it paused", b.standing(""), x)
		}
	}
	b.replace("yaml", false, sub("a", pipeline.View{}))
	if len(b.standing("a")) != 1 || len(b.expired("")) > 0 {
		t.Fatalf("got %+v and %+v, want it watched", b.standing(""), b.expired(""))
	}
	b.read("A")
	b.replace("yaml", false, paused)
	if len(b.standing("")) > 0 || len(b.expired("a")) != 1 {
		t.Fatalf("got %+v, want it paused again", b.standing(""))
	}
	b.resume("a", "")
	b.replace("yaml", false, paused) // the next start
	if len(b.standing("a")) != 1 || len(b.expired("")) > 0 {
		t.Errorf("got %+v and %+v, want it resumed", b.standing(""), b.expired(""))
	}
}

// TestPauseEndsInTheNextProcess: the end of a pause is stored. The wake sends a command, which
// resumes the subscription and asks for a check.
func TestPauseEndsInTheNextProcess(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("a")
	d.answer("A")
	until := d.now.Add(24 * time.Hour)
	d.command(flow.TypePause, flow.PauseCommand{URL: page, Client: "a", Until: until})
	w, ok := d.store.Wake(page)
	if xs, err := Expired(d.state()); err != nil || len(xs) != 1 || !xs[0].PausedUntil.Equal(until) || !ok || !w.At.Equal(until) {
		t.Fatalf("got %+v (%v) and the wake %+v", xs, err, w)
	}
	d.restart(Config{})
	d.now = until
	for _, m := range d.store.Due(until) {
		d.handle(m)
	}
	if len(d.out) != 1 || d.out[0].Type != flow.TypeResume || d.out[0].Topic != flow.TopicDocuments || d.out[0].Key != page {
		t.Fatalf("got %+v, want one command", d.out)
	}
	d.handle(d.out[0])
	if subs, err := Subscriptions(d.state()); err != nil || len(subs) != 1 || d.request.Check != 2 {
		t.Errorf("got %+v (%v) and the request %+v", subs, err, d.request)
	}
}

// TestPauseKeepsVersions: while all subscriptions are paused the page is not read, and its versions
// stay. A text that is new after the pause is a baseline; what changes later is compared with it.
func TestPauseKeepsVersions(t *testing.T) {
	b := newBench(t)
	view := pipeline.View{Confirm: 2, FlipFlop: 3}
	read := func(text string) { b.text(flow.DocumentID(page, view), text, 0, 1) }
	b.subscribe("a", view)
	read("A")
	for _, text := range []string{"B", "B"} {
		b.due()
		read(text)
	}
	last := b.due().Check // it is outstanding when the pause begins
	b.pause("a")
	none[dropDocument](b)
	none[pageEnded](b)
	if d := b.p.Documents[0]; !b.p.Rests() || b.p.Open != nil || d.N != 2 || d.TextHash != "text:B" {
		t.Fatalf("got %+v, want a page that rests with version 2", b.p)
	}
	b.do(checkNow{})
	none[requestCheck](b)

	b.resume("a", "")
	r := one[requestCheck](b).Request
	if r.Check <= last || r.BodyHash != "" || r.ETag != "" {
		t.Errorf("got the request %+v, want a new one without the hash of a body", r)
	}
	read("C") // needs no second check, as a first version does
	if v := one[newVersion](b); v.Snapshot.N != 3 || v.Snapshot.Previous != 0 {
		t.Errorf("got %+v, want the baseline 3", v.Snapshot)
	}
	for _, text := range []string{"B", "B"} { // no flip-flop: nobody was told of it since the baseline
		b.due()
		read(text)
	}
	if v := one[newVersion](b); v.Snapshot.N != 4 || v.Snapshot.Previous != 3 {
		t.Errorf("got %+v, want version 4 after 3", v.Snapshot)
	}
}

// TestPauseWithoutAChange: where the page is the same after the pause, the next change is compared
// with the version from before it.
func TestPauseWithoutAChange(t *testing.T) {
	b := newBench(t)
	b.subscribe("a", pipeline.View{})
	b.read("A")
	b.pause("a")
	b.resume("a", "")
	b.read("A")
	none[newVersion](b)
	b.due()
	b.read("B")
	if v := one[newVersion](b); v.Snapshot.N != 2 || v.Snapshot.Previous != 1 {
		t.Errorf("got %+v, want version 2 after 1", v.Snapshot)
	}
}

// TestPauseOfOneDocument: the others are checked without it, and equal bodies say nothing about it
// when it is resumed.
func TestPauseOfOneDocument(t *testing.T) {
	b := newBench(t)
	b.subscribe("a", pipeline.View{})
	b.read("A")
	b.subscribe("b", main)
	b.text(whole, "A", 0, 2)
	b.text(flow.DocumentID(page, main), "A", 1, 2)
	b.pause("b")
	b.due()
	if r := one[requestCheck](b).Request; len(r.Documents) != 1 || r.Documents[0].ID != whole {
		t.Fatalf("got %+v, want a request without the paused document", r)
	}
	b.read("B")
	b.resume("b", "")
	if r := one[requestCheck](b).Request; len(r.Documents) != 2 || r.BodyHash != "" {
		t.Fatalf("got %+v, want a request of both documents without the hash of a body", r)
	}
	b.text(flow.DocumentID(page, main), "B", 0, 2)
	if v := one[newVersion](b); v.Snapshot.Document == whole || v.Snapshot.Previous != 0 {
		t.Errorf("got %+v, want a baseline of the resumed document", v.Snapshot)
	}
	b.pause("b")
	b.cancel("b")
	if got := one[dropDocument](b).Document; got == whole {
		t.Errorf("document %s is dropped, want the cancelled one", got)
	}
}

// TestRestEndsOnce: what another origin asks of a paused document ends its rest. A subscription that is
// made before the next outcome does not make that one void.
func TestRestEndsOnce(t *testing.T) {
	b := newBench(t)
	b.subscribe("a", pipeline.View{})
	b.read("A")
	b.pause("a")
	b.replace("yaml", true)
	one[requestCheck](b)
	b.subscribe("b", pipeline.View{})
	b.read("B")
	if v := one[newVersion](b); v.Snapshot.N != 2 || v.Snapshot.Previous != 0 {
		t.Errorf("got %+v, want the baseline 2", v.Snapshot)
	}
}
