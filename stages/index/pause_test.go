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

// TestPauseWithAnEnd: each pause ends at its own time, and the one without an end stays.
func TestPauseWithAnEnd(t *testing.T) {
	b := newBench(t)
	for _, client := range []string{"day", "week", "ever"} {
		b.subscribe(client, pipeline.View{})
	}
	b.read("A")
	day, week := t0.AddDate(0, 0, 1), t0.AddDate(0, 0, 7)
	b.pauseUntil("week", week)
	b.pauseUntil("day", day)
	b.pauseUntil("ever", time.Time{})
	if w := one[wakeAt](b); b.p.Incarnation != "" || !w.Time.Equal(day) {
		t.Fatalf("got %+v and a wake at %v, want a page that rests until %v", b.p, w.Time, day)
	}
	b.woken(day.Add(-time.Minute))
	if len(b.standing("")) > 0 {
		t.Fatal("a pause ended too early")
	}
	b.woken(day)
	if got := stamps(b); len(b.standing("")) != 1 || len(b.standing("day")) != 1 {
		t.Fatalf("got %q, want the one that was paused for a day", got)
	}
	one[ask](b)
	b.read("B")
	if w := one[wakeAt](b); w.Time.After(week) {
		t.Errorf("the next wake is at %v, behind the end of a pause", w.Time)
	}
	b.woken(week)
	if len(b.standing("")) != 2 || len(b.standing("week")) != 1 || !b.p.PauseEnd.IsZero() {
		t.Errorf("got %+v and %v, want the one that was paused for a week", b.standing(""), b.p.PauseEnd)
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

// TestPauseEndsWithItsPage: nothing is left of a pause that is cancelled.
func TestPauseEndsWithItsPage(t *testing.T) {
	b := newBench(t)
	b.subscribe("a", pipeline.View{})
	b.pauseUntil("a", t0.Add(time.Hour))
	b.cancel("a")
	none[wakeAt](b)
	if b.p.URL != "" {
		t.Errorf("got %+v, want no page", b.p)
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
	if subs, err := Subscriptions(d.state()); err != nil || len(subs) != 1 || d.request.Check != 1 {
		t.Errorf("got %+v (%v) and the request %+v", subs, err, d.request)
	}
}
