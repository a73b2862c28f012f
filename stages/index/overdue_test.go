package index

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// overdue returns what is overdue at now.
func (d *desk) overdue(now time.Time) []string {
	d.steady = func() time.Time { return now }
	defer func() { d.steady = nil }()
	return d.stage.Overdue()
}

// TestASetClockMakesNothingOverdue sets the clock ahead and back while a request is
// outstanding: only time that passes counts.
func TestASetClockMakesNothingOverdue(t *testing.T) {
	d := newDesk(t, Config{})
	steady := t0
	d.steady = func() time.Time { return steady }
	d.subscribe("c") // every 10 minutes
	for _, set := range []time.Duration{24 * time.Hour, -48 * time.Hour} {
		d.now = d.now.Add(set)
		d.handle(flow.Message{Topic: flow.TopicDocuments, Key: page, Type: flow.TypeWake})
		if got := d.stage.Overdue(); len(got) != 0 {
			t.Errorf("got %v overdue after the clock was set by %v", got, set)
		}
	}
	steady = steady.Add(20*time.Minute + time.Second)
	if got := d.stage.Overdue(); !slices.Equal(got, []string{page}) {
		t.Errorf("got %v overdue, want the page", got)
	}
}

// TestTheSteadyClock has the stage measure by itself.
func TestTheSteadyClock(t *testing.T) {
	s := New(Config{Now: func() time.Time { return t0 }})
	if a := s.cfg.Steady(); !strings.Contains(a.String(), " m=+") {
		t.Errorf("got %v, want a time with its monotonic reading", a)
	}
}

func TestOverdue(t *testing.T) {
	overdue := func(d *desk, after time.Duration, want bool) {
		t.Helper()
		var pages []string
		if want {
			pages = []string{page}
		}
		if got := d.overdue(d.now.Add(after)); !slices.Equal(got, pages) {
			t.Errorf("got %v overdue after %v, want %v", got, after, want)
		}
	}
	d := newDesk(t, Config{})
	overdue(d, time.Hour, false)
	d.subscribe("c") // every 10 minutes
	overdue(d, 20*time.Minute, false)
	overdue(d, 20*time.Minute+1, true)
	d.wake() // the request is lost, and made again
	overdue(d, 16*time.Minute, false)
	overdue(d, 18*time.Minute, true)
	d.answer(english)
	overdue(d, 100*time.Hour, false)
	d.wake()
	d.cancel("c")
	overdue(d, 100*time.Hour, false)

	every := time.Second
	d = newDesk(t, Config{Every: &every})
	d.subscribe("c")
	overdue(d, 5*time.Minute, false)
	overdue(d, 5*time.Minute+1, true)
	o := flow.Outcome{Page: page, Incarnation: d.request.Incarnation, Check: 1, Nonce: d.request.Nonce, Kind: flow.OutcomeFailed, Class: pipeline.FailBusy, RetryAfter: 3 * time.Hour}
	d.handle(o.Message()) // the host asks to be left alone
	overdue(d, 2*time.Hour, false)

	d.restart(Config{Only: func(string) bool { return false }})
	for _, m := range d.store.Start(d.now) {
		d.handle(m)
	}
	overdue(d, 100*time.Hour, false)
}

func TestAnUnfinishedPartIsOverdue(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{After: 1, Retry: -1}})
	d.subscribe("c")
	d.fail(pipeline.FailDNS)
	if got := d.overdue(d.now.Add(time.Hour)); len(got) != 0 {
		t.Errorf("got %v overdue, though it expired", got)
	}
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page})
	begun := d.now
	d.command(flow.TypeSubscribe, flow.SubscribeCommand{Origin: "api", Subscription: sub("c", main)})
	d.answer(english)
	if len(d.request.Documents) != 2 {
		t.Fatalf("got %+v, want a request for both documents", d.request)
	}
	again := d.now
	o := flow.Outcome{
		Page: page, Incarnation: d.request.Incarnation, Check: d.request.Check, Nonce: d.request.Nonce, Parts: 2, Document: d.request.Documents[0].ID,
		Kind: flow.OutcomeFailed, Class: pipeline.FailEmpty,
	}
	d.handle(o.Message())
	if got := d.overdue(begun.Add(20*time.Minute + time.Second)); len(got) != 0 {
		t.Errorf("got %v overdue, want the time since the check that is under way", got)
	}
	if got := d.overdue(again.Add(20*time.Minute + time.Second)); len(got) != 1 {
		t.Errorf("got %v, want the page that waits for its second part", got)
	}
}

// TestPagesOfOthersAreNotOverdue gives a page to another process, and takes it back: what was
// asked for before that is forgotten.
func TestPagesOfOthersAreNotOverdue(t *testing.T) {
	owned := true
	d := newDesk(t, Config{Owned: func(string) bool { return owned }})
	d.subscribe("c")
	later := d.now.Add(time.Hour)
	if got := d.overdue(later); !slices.Equal(got, []string{page}) {
		t.Fatalf("got %v overdue, want the page", got)
	}
	owned = false
	if got := d.overdue(later); len(got) != 0 {
		t.Errorf("got %v overdue of another process", got)
	}
	owned = true
	if got := d.overdue(later); len(got) != 0 {
		t.Errorf("got %v overdue, which was not asked for since it came back", got)
	}
}

// TestLate looks at a page that is checked in time, then too late, as after its process was
// killed, and at one that is not answered.
func TestLate(t *testing.T) {
	d := newDesk(t, Config{})
	late := func(want int) {
		t.Helper()
		if got := d.stage.Late(); got != want {
			t.Errorf("%d pages are late, want %d", got, want)
		}
	}
	d.subscribe("c") // every 10 minutes
	late(0)
	d.now = d.now.Add(20*time.Minute + time.Second)
	late(1) // not answered
	d.answer("one")
	late(0)
	d.now = d.now.Add(30 * time.Minute)
	d.wake()
	d.answer("one")
	late(1)
	d.now = d.now.Add(lateShown + time.Second)
	late(0)
	d.now = d.now.Add(10 * time.Minute)
	d.wake()
	late(0)
}

// TestNothingIsRememberedOfPagesThatAreOver looks at all that a run remembers of a page that was
// late, after it ended, came to rest, or went to another process.
func TestNothingIsRememberedOfPagesThatAreOver(t *testing.T) {
	for name, over := range map[string]func(d *desk, owned *bool){
		"ended": func(d *desk, _ *bool) { d.cancel("c") },
		"rests": func(d *desk, _ *bool) {
			d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml", Keep: true, KeepInterval: pipeline.Never})
			d.cancel("c")
			d.overdue(d.now.Add(lateShown + time.Second))
		},
		"another has it": func(d *desk, owned *bool) {
			*owned = false
			d.overdue(d.now.Add(lateShown + time.Second))
		},
	} {
		owned := true
		d := newDesk(t, Config{Owned: func(string) bool { return owned }})
		d.subscribe("c") // every 10 minutes
		d.answer("one")
		d.now = d.now.Add(30 * time.Minute)
		d.wake()
		r := d.stage.run
		if len(r.late) != 1 || r.requests.Len() != 1 {
			t.Fatalf("%s: got %v and %d requests, want one of each", name, r.late, r.requests.Len())
		}
		over(d, &owned)
		if len(r.late)+r.requests.Len() != 0 {
			t.Errorf("%s: still there are %v and %d requests", name, r.late, r.requests.Len())
		}
	}
}
