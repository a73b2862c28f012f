package sinks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TestPastIsRemembered checks what a queue says of its last success and failure.
func TestPastIsRemembered(t *testing.T) {
	s := &script{t: t, now: t0}
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
	if q := s.q; !q.LastSuccess.Equal(last) || !q.PruneAt.Equal(last.Add(keepPast)) || q.blank() {
		t.Errorf("a week later: %+v", q)
	}
	prune(last.Add(keepPast))
	if q := s.q; !q.LastSuccess.IsZero() || !q.LastFailure.IsZero() || q.PastReason != "" || !q.blank() {
		t.Errorf("a year later: %+v", q)
	}
}

// TestPastWithAClockThatGoesBack leaves no success in the future.
func TestPastWithAClockThatGoesBack(t *testing.T) {
	s := &script{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.result(time.Second, nil)
	back := t0.Add(-time.Hour)
	if q, _ := s.p.apply(s.q, woken{back}, nil); !q.LastSuccess.Equal(back) {
		t.Errorf("the last success is %s, want %s", q.LastSuccess, back)
	}
}

// TestTellAtOnce tells of the first failure where its error asks for that, and once.
func TestTellAtOnce(t *testing.T) {
	certificate := pipeline.TellAtOnce(errors.New("the certificate has expired"))
	for name, err := range map[string]error{"alone": certificate, "with a wait": pipeline.RetryAfter(certificate, time.Minute)} {
		s := &script{t: t, now: t0}
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
	if pipeline.TellAtOnce(nil) != nil || pipeline.TellsAtOnce(errors.New("x")) {
		t.Error("nothing is marked, but told")
	}
}

func TestRefusedKeepsTheWait(t *testing.T) {
	class, after := pipeline.ClassOf(pipeline.Refused(pipeline.RetryAfter(errors.New("400"), time.Minute)))
	if class != pipeline.ClassRefused || after != time.Minute {
		t.Errorf("got class %d after %s, want refused after 1m", class, after)
	}
	if pipeline.Refused(nil) != nil {
		t.Error("Refused(nil) is not nil")
	}
}
