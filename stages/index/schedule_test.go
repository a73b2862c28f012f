package index

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/schedule"
)

func TestALostRequestIsAskedAgain(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	first := one[Ask](b).Request
	deadline := one[WakeAt](b).Time
	b.do(Wake{}) // before the deadline, and by the process that asked
	none[Ask](b)
	if w := one[WakeAt](b); w.Time != deadline || !w.AtStart {
		t.Errorf("got wake %+v, want it set again for %v", w, deadline)
	}
	old := b.outcome(flow.OutcomeRead)
	old.Document, old.Parts, old.TextHash = whole, 1, "text:A"
	b.restart(Wake{})
	if r := one[Ask](b).Request; r.Check != first.Check+1 {
		t.Errorf("got %+v, want a new number", r)
	}
	if out := b.do(Outcome{Outcome: old}); len(out) != 0 {
		t.Errorf("got %+v of a check that was given up", out)
	}
	b.now = b.p.Open.Deadline
	b.do(Wake{})
	if r := one[Ask](b).Request; r.Check != first.Check+2 {
		t.Errorf("got %+v, want a new number after the deadline", r)
	}
}

func TestAWakeTooEarlyDoesNothing(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	want := one[WakeAt](b)
	for _, do := range []func(Action) []Output{b.do, b.restart} {
		do(Wake{})
		none[Ask](b)
		if got := one[WakeAt](b); got != want {
			t.Errorf("got %+v, want %+v again", got, want)
		}
	}
}

// TestCommandsLoseNoOutcome: after a crash commands are handled again, and behind them in
// the log is what the last process found.
func TestCommandsLoseNoOutcome(t *testing.T) {
	for _, command := range []Action{
		CheckNow{}, Replace{Origin: "yaml"}, Resume{}, Expire{Receiver: "hook"}, Cancel{Client: "nobody"},
		Subscribe{Origin: "api", Subscription: sub("d", pipeline.View{})},
	} {
		b := newBench(t)
		b.subscribe("c", pipeline.View{})
		b.read("A")
		b.due()
		b.now = b.p.Open.Deadline
		b.restart(command)
		none[Ask](b)
		b.read("B")
		if v := one[Version](b); v.Snapshot.N != 2 {
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
	b.restart(Outcome{Outcome: o}) // what the last process found still counts
	b.restart(Wake{})
	if r := one[Ask](b).Request; r.BodyHash != "" || r.Documents[0].TextHash != "" {
		t.Errorf("got %+v, want a full request again", r)
	}
}

func TestCheckNow(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.do(CheckNow{}) // while a check is under way, one more begins behind it
	none[Ask](b)
	b.read("A")
	one[Ask](b)
	b.unchanged()
	none[Ask](b)
	due := one[WakeAt](b).Time
	b.do(CheckNow{})
	one[Ask](b)
	b.unchanged()
	if got := one[WakeAt](b).Time; got != due && due.Sub(b.now) > 10*time.Second {
		t.Errorf("got the next check at %v, want %v as before", got, due)
	}
}

func TestOverduePagesAreSpread(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	b.due()
	b.unchanged()
	due := one[WakeAt](b).Time
	b.now = due.Add(5*time.Hour + 3*time.Minute)
	b.do(Wake{})
	none[Ask](b)
	w := one[WakeAt](b)
	if d := w.Time.Sub(b.now); d <= 0 || d > time.Minute {
		t.Errorf("got a check in %v, want it spread over a minute", d)
	}
	b.now = w.Time.Add(time.Hour) // late again: it is not put off a second time
	b.do(Wake{})
	one[Ask](b)
	b.unchanged()
	if next := one[WakeAt](b).Time; next.Sub(due)%(10*time.Minute) != 0 {
		t.Errorf("got the next check at %v, out of the phase of %v", next, due)
	}
}

func TestEveryOverridesIntervals(t *testing.T) {
	b := newBench(t)
	b.rules.Every = new(time.Duration)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	one[Ask](b)
	b.failed(pipeline.FailStatus)
	one[Ask](b)
	*b.rules.Every = time.Second
	b.unchanged()
	none[Ask](b)
	if got, want := one[WakeAt](b).Time.Sub(b.now), time.Second; got > want || got <= 0 {
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
	b.do(Wake{})
	if got := one[WakeAt](b).Time; got != asked.Add(every) && len(all[Ask](b.out)) == 0 {
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
	one[Ask](b)
	left--
	b.unchanged()
	none[Ask](b)
	if w := one[WakeAt](b); !w.AtStart {
		t.Errorf("got wake %+v, want one for the next run", w)
	}
	left--
	for _, a := range []Action{Wake{}, CheckNow{}} {
		b.do(a)
		none[Ask](b)
		b.restart(a)
		none[Ask](b)
	}
	b.subscribe("d", main)
	none[Ask](b)
	b.budget, b.rules.Every = nil, nil
	b.restart(Wake{})
	if r := one[Ask](b).Request; len(r.Documents) != 2 {
		t.Errorf("got %+v, want the new document asked for in the next run", r)
	}
}

func TestAtOnce(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("A")
	p, out := Apply(b.p, Event{URL: page, Now: b.now.Add(time.Second), Rules: b.rules, AtOnce: true, Do: Wake{}})
	if len(all[Ask](out)) != 1 || p.Check != 2 {
		t.Errorf("got %+v, want a request at once", out)
	}
}
