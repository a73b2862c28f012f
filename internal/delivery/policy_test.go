package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// applyEvent applies ev to q. It returns the actions without those that emit health events, and the
// wake, which comes last.
func applyEvent(t *testing.T, q *Queue, p Policy, ev event) ([]action, scheduleWake) {
	t.Helper()
	var acts []action
	*q, acts = p.apply(*q, ev, nil)
	if len(acts) == 0 {
		return nil, scheduleWake{}
	}
	w, ok := acts[len(acts)-1].(scheduleWake)
	if !ok {
		t.Fatalf("the last action is %#v, want a wake", acts[len(acts)-1])
	}
	acts = slices.DeleteFunc(acts[:len(acts)-1], func(a action) bool { _, tell := a.(emitHealth); return tell })
	return acts, w
}

func failed(err error) attemptOutcome { return outcomeOf(err) }

func TestOneAtATimeInOrder(t *testing.T) {
	var q Queue
	var p Policy
	acts, w := applyEvent(t, &q, p, enqueued{t0})
	if want := []action{startAttempt{Seq: 0, Number: 1, BatchLimit: 1}}; !slices.Equal(acts, want) {
		t.Fatalf("got %#v, want %#v", acts, want)
	}
	if !w.AtStart {
		t.Error("no wake at the next start while an attempt is in flight")
	}
	if acts, _ = applyEvent(t, &q, p, enqueued{t0}); len(acts) != 0 {
		t.Errorf("a second one while the first is in flight: got %#v, want nothing", acts)
	}
	acts, _ = applyEvent(t, &q, p, attemptEnded{At: t0, Attempt: 1, Outcome: outcomeOf(nil)})
	if want := []action{markDelivered{Seq: 0, Attempts: 1}, startAttempt{Seq: 1, Number: 2, BatchLimit: 3}}; !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
	acts, w = applyEvent(t, &q, p, attemptEnded{At: t0, Attempt: 2, Outcome: outcomeOf(nil)})
	if want := []action{markDelivered{Seq: 1, Attempts: 1}}; !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
	if want := (scheduleWake{At: t0.Add(defaultRemember)}); w != want {
		t.Errorf("idle: got %v, want %v", w, want)
	}
}

func TestScheduleOfRetries(t *testing.T) {
	var q Queue
	var p Policy
	at := t0
	applyEvent(t, &q, p, enqueued{at})
	var delays []time.Duration
	for {
		acts, w := applyEvent(t, &q, p, attemptEnded{At: at, Attempt: q.Attempt, Outcome: failed(errors.New("down"))})
		if len(acts) > 0 {
			dead, ok := acts[0].(moveToDead)
			if !ok || len(acts) != 1 {
				t.Fatalf("got %#v, want one dead", acts)
			}
			if want := 150; dead.Attempts < 100 || dead.Attempts > want {
				t.Errorf("given up after %d attempts, want about %d", dead.Attempts, want)
			}
			if !strings.Contains(dead.Reason, "down") || !strings.Contains(dead.Reason, "72h") {
				t.Errorf("reason %q does not say why", dead.Reason)
			}
			break
		}
		delays = append(delays, w.At.Sub(at))
		// A wake that comes early, as those of a start do, only sets the wake again.
		acts, again := applyEvent(t, &q, p, woken{w.At.Add(-time.Nanosecond)})
		if len(acts) != 0 || again != w {
			t.Fatalf("early wake: got %#v and %v, want nothing and %v", acts, again, w)
		}
		at = w.At
		acts, _ = applyEvent(t, &q, p, woken{at})
		if len(acts) != 1 || acts[0].(startAttempt).AfterFailure != true {
			t.Fatalf("due: got %#v, want a send in the slow pool", acts)
		}
	}
	since := time.Duration(0)
	for i, d := range delays[:len(delays)-1] { // the last one ends with DeadAfter
		want := 15 * time.Minute
		switch {
		case i < 3:
			want = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}[i]
		case since >= 24*time.Hour:
			want = time.Hour
		}
		if d != want {
			t.Errorf("%v after the first failure the delay is %v, want %v", since, d, want)
		}
		since += d
	}
	if got := at.Sub(t0); got != defaultDeadAfter {
		t.Errorf("given up after %v, want %v", got, defaultDeadAfter)
	}
}

func TestJitter(t *testing.T) {
	for _, tt := range []struct {
		err    error
		jitter float64
		want   time.Duration
	}{
		{errors.New("x"), 0, 100 * time.Second},
		{errors.New("x"), 0.5, 90 * time.Second},
		{errors.New("x"), 1, 80 * time.Second},
		{failure.RetryAfter(errors.New("x"), 1000*time.Second), 0, 1000 * time.Second},
		{failure.RetryAfter(errors.New("x"), 1000*time.Second), 0.5, 1100 * time.Second},
		{failure.RetryAfter(errors.New("x"), 10*time.Second), 0, 100 * time.Second},
		{failure.RetryAfter(errors.New("x"), 100*365*24*time.Hour), 0, 24 * time.Hour},
	} {
		var q Queue
		p := Policy{Retry: []time.Duration{100 * time.Second}}
		applyEvent(t, &q, p, enqueued{t0})
		_, w := applyEvent(t, &q, p, attemptEnded{At: t0, Attempt: 1, Outcome: failed(tt.err), Jitter: tt.jitter})
		if got := w.At.Sub(t0); got != tt.want {
			t.Errorf("%v, jitter %v: delay %v, want %v", tt.err, tt.jitter, got, tt.want)
		}
	}
}

func TestPermanentIsDeadAtOnce(t *testing.T) {
	var q Queue
	var p Policy
	applyEvent(t, &q, p, enqueued{t0})
	applyEvent(t, &q, p, enqueued{t0})
	acts, _ := applyEvent(t, &q, p, attemptEnded{At: t0, Attempt: 1, Outcome: failed(failure.Permanent(errors.New("no")))})
	want := []action{moveToDead{Seq: 0, Attempts: 1, Reason: "no"}, startAttempt{Seq: 1, Number: 2, BatchLimit: 1, AfterFailure: true}}
	if !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
}

func TestRefusedThreeTimesThenTheNext(t *testing.T) {
	var q Queue
	var p Policy
	applyEvent(t, &q, p, enqueued{t0})
	applyEvent(t, &q, p, enqueued{t0})
	refused := failed(failure.Refused(errors.New("400")))
	at := t0
	for i := range 2 {
		acts, w := applyEvent(t, &q, p, attemptEnded{At: at, Attempt: q.Attempt, Outcome: refused})
		if len(acts) != 0 || !w.At.After(at) {
			t.Fatalf("refusal %d: got %#v, want a wake later", i+1, acts)
		}
		at = w.At
		applyEvent(t, &q, p, woken{at})
	}
	acts, _ := applyEvent(t, &q, p, attemptEnded{At: at, Attempt: q.Attempt, Outcome: refused})
	want := []action{moveToDead{Seq: 0, Attempts: 3, Reason: "refused 3 times: 400"}, startAttempt{Seq: 1, Number: 4, BatchLimit: 1, AfterFailure: true}}
	if !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
}

func TestGoneMakesPendingDeadLetters(t *testing.T) {
	var q Queue
	var p Policy
	const n = 2*dropBatch + 7
	for range n {
		applyEvent(t, &q, p, enqueued{t0})
	}
	given := 0
	count := func(acts []action) {
		for _, a := range acts {
			d, ok := a.(moveToDead)
			if !ok {
				t.Fatalf("got %#v, want only the dead", a)
			}
			if d.Seq != uint64(given) || !strings.Contains(d.Reason, "410") || !d.Expired {
				t.Fatalf("got %#v as number %d", d, given)
			}
			given++
		}
	}
	acts, w := applyEvent(t, &q, p, attemptEnded{At: t0, Attempt: 1, Outcome: failed(failure.Gone(errors.New("410")))})
	count(acts)
	if !q.Expired() || !strings.Contains(q.ExpiredReason, "410") {
		t.Errorf("got %+v, want it expired", q)
	}
	// One that comes later is tried for itself.
	acts, _ = applyEvent(t, &q, p, enqueued{t0})
	count(acts)
	for q.DropTo > 0 {
		if w.At.After(t0) {
			t.Fatalf("the rest has to wait until %v", w.At)
		}
		acts, w = applyEvent(t, &q, p, woken{t0})
		if q.DropTo == 0 {
			if s, ok := acts[len(acts)-1].(startAttempt); !ok || s.Seq != n {
				t.Errorf("got %#v, want a send of %d", acts[len(acts)-1], n)
			}
			acts = acts[:len(acts)-1]
		}
		count(acts)
	}
	if given != n {
		t.Errorf("%d are dead, want %d", given, n)
	}
}

func TestCanceledDoesNotCount(t *testing.T) {
	var q Queue
	var p Policy
	applyEvent(t, &q, p, enqueued{t0})
	acts, _ := applyEvent(t, &q, p, attemptEnded{At: t0.Add(time.Hour), Attempt: 1, Outcome: failed(fmt.Errorf("x: %w", context.Canceled))})
	if want := []action{startAttempt{Seq: 0, Number: 2, BatchLimit: 1}}; !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
	if q.Tries != 0 || q.Failures != 0 || !q.TriedSince.Equal(t0.Add(time.Hour)) {
		t.Errorf("it counted: %+v", q)
	}
}

func TestLostAttemptIsMadeAgain(t *testing.T) {
	var q Queue
	var p Policy
	applyEvent(t, &q, p, enqueued{t0})
	acts, _ := applyEvent(t, &q, p, attemptLost{t0})
	if want := []action{startAttempt{Seq: 0, Number: 2, BatchLimit: 1}}; !slices.Equal(acts, want) {
		t.Errorf("got %#v, want %#v", acts, want)
	}
	before := q
	after, acts := p.apply(q, attemptEnded{At: t0, Attempt: 1, Outcome: outcomeOf(nil)}, nil)
	if after != before || acts != nil {
		t.Errorf("the result of the lost attempt: got %+v, %#v, want no change", after, acts)
	}
}

// TestLongReason: a long reason does not cut off ambiguousSuffix.
func TestLongReason(t *testing.T) {
	o := outcomeOf(failure.Ambiguous(errors.New(strings.Repeat("x", 10_000))))
	if !strings.HasSuffix(o.Reason, "x..."+ambiguousSuffix) || len(o.Reason) > maxReason+8+len(ambiguousSuffix) {
		t.Errorf("got %d bytes: %s", len(o.Reason), o.Reason)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\tc":       "a b c",
		"\x1b[31mred\x00": "[31mred",
		"\xff":            "\uFFFD",
		"x\u202Ey":        "x y",
		"":                "",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
	if got := oneLine(strings.Repeat("ä", 10_000)); len(got) > maxReason+8 || !strings.HasSuffix(got, "ä...") {
		t.Errorf("a long text became %d bytes, ending in %q", len(got), got[len(got)-5:])
	}
}

// TestPastIsRemembered checks what a queue says of its last success and failure.
func TestPastIsRemembered(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.result(time.Second, errors.New("503"))
	if q := s.q; !q.LastFailure.Equal(t0.Add(time.Second)) || !q.LastSuccess.IsZero() || q.Reason != "503" || q.PastReason != "" {
		t.Errorf("after a failure: %+v", q)
	}
	s.now = s.q.Due
	s.apply(woken{s.now})
	s.result(time.Second, nil)
	if q := s.q; !q.LastSuccess.Equal(s.now) || !q.LastFailure.Equal(t0.Add(time.Second)) || q.Reason != "" || q.PastReason != "503" {
		t.Errorf("after a success: %+v", q)
	}
	s.apply(enqueued{s.now})
	s.result(time.Second, nil)
	if q := s.q; !q.LastSuccess.Equal(s.now) || q.PastReason != "503" {
		t.Errorf("after another success: %+v", q)
	}
	last := s.q.LastSuccess
	prune := func(at time.Time) { s.q, _ = s.p.apply(s.q, pruned{At: at}, nil) }
	prune(last.Add(defaultRemember))
	if q := s.q; !q.LastSuccess.Equal(last) || !q.PruneAt.Equal(last.Add(keepResults)) || q.canForget() {
		t.Errorf("a week later: %+v", q)
	}
	prune(last.Add(keepResults))
	if q := s.q; !q.LastSuccess.IsZero() || !q.LastFailure.IsZero() || q.PastReason != "" || !q.canForget() {
		t.Errorf("a year later: %+v", q)
	}
}

// TestPastWithAClockThatGoesBack leaves no success in the future.
func TestPastWithAClockThatGoesBack(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.result(time.Second, nil)
	back := t0.Add(-time.Hour)
	if q, _ := s.p.apply(s.q, woken{back}, nil); !q.LastSuccess.Equal(back) {
		t.Errorf("the last success is %s, want %s", q.LastSuccess, back)
	}
}

// TestTellAtOnce: the first failure is reported, once, if its error asks for that.
func TestTellAtOnce(t *testing.T) {
	certificate := failure.TellAtOnce(errors.New("the certificate has expired"))
	for name, err := range map[string]error{"alone": certificate, "with a wait": failure.RetryAfter(certificate, time.Minute)} {
		s := &queueScript{t: t, now: t0}
		s.apply(enqueued{s.now})
		for range 4 {
			s.fail(0, err)
		}
		s.fail(0, nil)
		want := []string{"send 0", "tell receiver_failing", "send 0", "send 0", "send 0", "send 0", "tell receiver_recovered", "done 0 after 5"}
		if !slices.Equal(s.log, want) {
			t.Errorf("%s: got %q, want %q", name, s.log, want)
		}
	}
	if failure.TellAtOnce(nil) != nil || failure.TellsAtOnce(errors.New("x")) {
		t.Error("nothing is marked, but told")
	}
}

func TestRefusedKeepsTheWait(t *testing.T) {
	class, after := failure.ClassOf(failure.Refused(failure.RetryAfter(errors.New("400"), time.Minute)))
	if class != failure.ClassRefused || after != time.Minute {
		t.Errorf("got class %d after %s, want refused after 1m", class, after)
	}
	if failure.Refused(nil) != nil {
		t.Error("Refused(nil) is not nil")
	}
}
