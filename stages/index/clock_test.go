package index

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// back sets the clock back and wakes the page, as a transport does.
func (b *bench) back(d time.Duration) {
	b.Helper()
	b.now = b.now.Add(-d)
	b.do(Wake{})
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
			b.do(Wake{})
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
			if as := all[Ask](b.out); len(as) == 0 {
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

func TestAnAnswerAfterTheClockWasSetBackCounts(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.now = b.now.Add(-3 * time.Hour)
	b.read("B")
	if s := one[Version](b).Snapshot; s.N != 2 {
		t.Errorf("got %+v", s)
	}
	if w := one[WakeAt](b); w.Time.Sub(b.now) > 10*time.Minute+10*time.Second {
		t.Errorf("got the next check in %v", w.Time.Sub(b.now))
	}
}

func TestAClockSetForward(t *testing.T) {
	b := newBench(t)
	b.rules.ExpireAfter = 1
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.now = b.now.Add(365 * 24 * time.Hour)
	b.do(Wake{})
	one[Ask](b) // as if the request were lost: that is no failure
	if b.p.Failures != 0 {
		t.Errorf("got %d failures", b.p.Failures)
	}
	b.unchanged()
	if w := one[WakeAt](b); w.Time.Sub(b.now) > 10*time.Minute || !w.Time.After(b.now) {
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
		s.Interval = pipeline.Duration(rnd.Int64N(int64(2 * time.Hour)))
		b.do(Subscribe{Origin: "api", Subscription: s})
		b.read("A")
		for range 20 {
			b.now = b.now.Add(time.Duration(rnd.Int64N(int64(s.Interval/2 + 1))))
			before := b.p
			a := &application{Event: Event{URL: page, Now: b.now, Rules: b.rules}, p: before.clone()}
			a.clamp()
			after := a.p
			if after.Due != before.Due || after.Delayed != before.Delayed || after.NotBefore != before.NotBefore || after.Asked != before.Asked ||
				before.Open != nil && after.Open.Deadline != before.Open.Deadline {
				t.Fatalf("interval %v: got %+v of %+v at %v", s.Interval, after, before, b.now)
			}
			if b.p.Open != nil {
				b.unchanged()
			} else {
				b.do(Wake{})
			}
		}
	}
}
