package index

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/schedule"
)

// TestChecksComeInSteps: a page wakes at a step, at most one step after it is due, and its next check is
// due by its phase as before.
func TestChecksComeInSteps(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	for range 3 {
		due := b.p.NextDue()
		w := one[wakeAt](b)
		if late := w.Time.Sub(due); late < 0 || late >= step || w.Time.UnixNano()%int64(step) != 0 {
			t.Errorf("the page wakes at %v, want a multiple of %v at %v or soon after", w.Time, step, due)
		}
		b.now = w.Time
		b.do(wake{})
		one[requestCheck](b)
		b.unchanged()
		if next := b.p.NextDue(); next != due.Add(b.p.Paced) {
			t.Errorf("the next check is due at %v, want %v", next, due.Add(b.p.Paced))
		}
	}
	if got, want := roundToStep(time.Unix(7, 1), 100*time.Millisecond), time.Unix(7, 5e6); !got.Equal(want) {
		t.Errorf("a check each 100 ms is at %v, want %v", got, want)
	}
}

// TestCommandsLoseNoOutcome: after a crash commands are handled again, and behind them in
// the log is what the last process found.
func TestCommandsLoseNoOutcome(t *testing.T) {
	for _, command := range []action{
		checkNow{}, replace{Origin: "yaml"}, resume{}, expire{Receiver: "hook"}, cancel{Client: "nobody"},
		subscribe{Origin: "api", Subscription: sub("d", pipeline.View{})},
	} {
		b := newBench(t)
		b.subscribe("c", pipeline.View{})
		b.read("A")
		b.due()
		b.now = b.p.Open.Deadline
		b.restart(command)
		none[requestCheck](b)
		b.read("B")
		if v := one[newVersion](b); v.Snapshot.N != 2 {
			t.Errorf("behind %T: version %d, want 2", command, v.Snapshot.N)
		}
	}
}

func TestALostFullFetchStaysFull(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	o := b.outcome(flow.OutcomeUnchanged)
	o.Against = "body:Z"
	b.restart(outcome{Outcome: o}) // what the last process found still counts
	b.restart(wake{})
	if r := one[requestCheck](b).Request; r.BodyHash != "" || r.Documents[0].TextHash != "" {
		t.Errorf("got %+v, want a full request again", r)
	}
}

func TestCheckNow(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.do(checkNow{}) // while a check is under way, one more begins behind it
	none[requestCheck](b)
	b.read("A")
	one[requestCheck](b)
	b.unchanged()
	none[requestCheck](b)
	due := one[wakeAt](b).Time
	b.do(checkNow{})
	one[requestCheck](b)
	b.unchanged()
	if got := one[wakeAt](b).Time; got != due && due.Sub(b.now) > 10*time.Second {
		t.Errorf("got the next check at %v, want %v as before", got, due)
	}
}

func TestOverduePagesAreSpread(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.unchanged()
	due := one[wakeAt](b).Time
	b.now = due.Add(5*time.Hour + 3*time.Minute)
	b.do(wake{})
	none[requestCheck](b)
	w := one[wakeAt](b)
	if d := w.Time.Sub(b.now); d <= 0 || d > time.Minute {
		t.Errorf("got a check in %v, want it spread over a minute", d)
	}
	b.now = w.Time.Add(time.Hour) // late again: it is not put off a second time
	b.do(wake{})
	one[requestCheck](b)
	b.unchanged()
	if next := one[wakeAt](b).Time; next.Sub(due)%(10*time.Minute) != 0 {
		t.Errorf("got the next check at %v, out of the phase of %v", next, due)
	}
}

func TestEveryOverridesIntervals(t *testing.T) {
	b := newBench(t)
	b.rules.Every = new(time.Duration)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	one[requestCheck](b)
	b.failed(pipeline.FailStatus)
	one[requestCheck](b)
	*b.rules.Every = time.Second
	b.unchanged()
	none[requestCheck](b)
	if got, want := one[wakeAt](b).Time.Sub(b.now), time.Second; got > want || got <= 0 {
		t.Errorf("got the next check in %v, want at most %v", got, want)
	}
	// Without the override the page finds a phase of its own again.
	b.rules.Every = nil
	b.due()
	asked := b.now
	b.unchanged()
	if got, want := b.p.Due, schedule.Second(page, asked, 10*time.Minute, 10*time.Second); got != want {
		t.Errorf("got it due at %v, want %v", got, want)
	}
}

func TestEveryCutsAWaitShort(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	every := 2 * time.Second
	b.rules.Every = &every
	asked := b.p.Asked
	b.do(wake{})
	if got := one[wakeAt](b).Time; got != asked.Add(every) && len(all[requestCheck](b.out)) == 0 {
		t.Errorf("got the next check at %v, want %v", got, asked.Add(every))
	}
}

func TestABudgetEndsRequests(t *testing.T) {
	b := newBench(t)
	left := 2
	b.budget = &left
	b.rules.Every = new(time.Duration)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	one[requestCheck](b)
	left--
	b.unchanged()
	none[requestCheck](b)
	if w := one[wakeAt](b); !w.AtStart {
		t.Errorf("got wake %+v, want one for the next run", w)
	}
	left--
	for _, a := range []action{wake{}, checkNow{}} {
		b.do(a)
		none[requestCheck](b)
		b.restart(a)
		none[requestCheck](b)
	}
	b.subscribe("d", main)
	none[requestCheck](b)
	b.budget, b.rules.Every = nil, nil
	b.restart(wake{})
	if r := one[requestCheck](b).Request; len(r.Documents) != 2 {
		t.Errorf("got %+v, want the new document asked for in the next run", r)
	}
}

func TestAtOnce(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	p, out := apply(&b.p, event{URL: page, Now: b.now.Add(time.Second), Rules: b.rules, AtOnce: true, Do: wake{}})
	if len(all[requestCheck](out)) != 1 || p.Check != 2 {
		t.Errorf("got %+v, want a request at once", out)
	}
}

// back sets the clock back and wakes the page, as a transport does.
func (b *bench) back(d time.Duration) {
	b.Helper()
	b.now = b.now.Add(-d)
	b.do(wake{})
}

func TestAClockSetBack(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*bench)
		most    time.Duration // until it is asked for again
	}{
		"a page that is due later": {func(b *bench) { b.due(); b.unchanged() }, 10*time.Minute + 10*time.Second},
		"a page asked for":         {func(b *bench) { b.due() }, 3*time.Minute + time.Second},
		"a host that asked to wait": {func(b *bench) {
			b.due()
			o := b.outcome(flow.OutcomeFailed)
			o.Class, o.RetryAfter = pipeline.FailBusy, time.Hour
			b.found(o)
		}, time.Hour + time.Minute},
		"a page put off": {func(b *bench) {
			b.due()
			b.unchanged()
			b.now = b.now.Add(24 * time.Hour)
			b.do(wake{})
		}, 10*time.Minute + 10*time.Second},
	} {
		for _, by := range []time.Duration{2 * time.Minute, 3 * time.Hour, 10 * 365 * 24 * time.Hour} {
			b := newBench(t)
			b.subscribe("c", pipeline.View{})
			b.read("A")
			c.prepare(b)
			check := b.p.Check
			b.back(by)
			set := b.now
			if as := all[requestCheck](b.out); len(as) == 0 {
				b.due()
			}
			if got := b.now.Sub(set); got > c.most+time.Second || b.p.Check == check {
				t.Errorf("%s, %v: asked again after %v, want at most %v", name, by, got, c.most)
			}
			if b.p.Asked.After(b.now) || b.p.Open.Deadline.Sub(b.now) > 4*time.Minute {
				t.Errorf("%s, %v: got %+v", name, by, b.p)
			}
		}
	}
}

func TestAClockSetForward(t *testing.T) {
	b := newBench(t)
	b.rules.Expire.After = 1
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.now = b.now.Add(365 * 24 * time.Hour)
	b.do(wake{})
	one[requestCheck](b) // as if the request were lost: that is no failure
	if b.p.Failures != 0 {
		t.Errorf("got %d failures", b.p.Failures)
	}
	b.unchanged()
	if w := one[wakeAt](b); w.Time.Sub(b.now) > 10*time.Minute || !w.Time.After(b.now) {
		t.Errorf("got the next check in %v", w.Time.Sub(b.now))
	}
}

func TestAClockThatWasWrongForAWhile(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		wish, most time.Duration
	}{
		"a check was complete then": {0, 10*time.Minute + 10*time.Second},
		"a host asked to wait then": {time.Hour, time.Hour + 10*time.Second},
	} {
		b := newBench(t)
		b.subscribe("c", pipeline.View{})
		b.read("A")
		b.due()
		b.now = b.now.Add(year)
		o := b.outcome(flow.OutcomeFailed)
		o.Class, o.RetryAfter = pipeline.FailBusy, c.wish
		b.found(o)
		b.back(year)
		set := b.now
		b.due()
		if got := b.now.Sub(set); got > c.most+time.Second {
			t.Errorf("%s: asked again after %v, want at most %v", name, got, c.most)
		}
	}
}

func TestTimesThatTheRulesSetAreLeft(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		b := newBench(t)
		s := sub("c", pipeline.View{})
		every := rnd.Int64N(int64(2 * time.Hour))
		s.Interval = pipeline.Every(time.Duration(every))
		b.do(subscribe{Origin: "api", Subscription: s})
		b.read("A")
		for range 20 {
			b.now = b.now.Add(time.Duration(rnd.Int64N(every/2 + 1)))
			before := b.p
			a := &applier{event: event{URL: page, Now: b.now, Rules: b.rules}, p: before.clone()}
			a.clampTimes()
			after := a.p
			if after.Due != before.Due || after.Delayed != before.Delayed || after.NotBefore != before.NotBefore || after.Asked != before.Asked ||
				before.Open != nil && after.Open.Deadline != before.Open.Deadline {
				t.Fatalf("interval %v: got %+v of %+v at %v", s.Interval, after, before, b.now)
			}
			if b.p.Open != nil {
				b.unchanged()
			} else {
				b.do(wake{})
			}
		}
	}
}
