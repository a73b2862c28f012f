package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// queueScript feeds a queue with the results of attempts and records the actions.
type queueScript struct {
	t   *testing.T
	q   Queue
	p   Policy
	now time.Time
	// withdrawn are notifications of cancelled subscriptions.
	withdrawn []uint64
	log       []string
}

func (s *queueScript) apply(ev event) {
	s.t.Helper()
	q, acts := s.p.apply(s.q, ev, func(seq uint64) bool { return slices.Contains(s.withdrawn, seq) })
	s.q = q
	for _, a := range acts {
		switch a := a.(type) {
		case startAttempt:
			s.log = append(s.log, fmt.Sprint("send ", a.Seq))
		case markDelivered:
			s.log = append(s.log, fmt.Sprint("done ", a.Seq, " after ", a.Attempts))
		case moveToDead:
			s.log = append(s.log, fmt.Sprint("dead ", a.Seq, " after ", a.Attempts))
		case dropWithdrawn:
			s.log = append(s.log, fmt.Sprint("drop ", a.Seq))
		case emitHealth:
			s.log = append(s.log, fmt.Sprint("tell ", a.Event))
		}
	}
}

// result ends the attempt in flight after d.
func (s *queueScript) result(d time.Duration, err error) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.apply(attemptEnded{At: s.now, Attempt: s.q.Attempt, Outcome: outcomeOf(err), Jitter: 0})
}

// resultAfterRateWait ends the attempt in flight, which its sink's rate held for hold, late.
func (s *queueScript) resultAfterRateWait(hold, late time.Duration, err error) {
	s.t.Helper()
	ready := s.now.Add(hold)
	s.now = ready.Add(late)
	s.apply(attemptEnded{At: s.now, Ready: ready, Attempt: s.q.Attempt, Outcome: outcomeOf(err), Jitter: 0})
}

// fail waits for the next attempt, for at least d, and lets it fail.
func (s *queueScript) fail(d time.Duration, err error) {
	s.t.Helper()
	s.now = later(s.now.Add(d), s.q.Due)
	s.apply(woken{At: s.now})
	s.result(0, err)
}

func TestExpiry(t *testing.T) {
	plain, gone := errors.New("500"), failure.Gone(errors.New("410"))
	const h = time.Hour
	for name, tt := range map[string]struct {
		do   func(s *queueScript)
		want []string
	}{
		"three failures in a row are told once": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				for range 5 {
					s.fail(0, plain)
				}
				s.fail(0, nil)
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "send 0", "send 0", "send 0", "tell receiver_recovered", "done 0 after 6"},
		},
		"two failures are not told": {
			func(s *queueScript) { s.apply(enqueued{s.now}); s.fail(0, plain); s.fail(0, plain); s.fail(0, nil) },
			[]string{"send 0", "send 0", "send 0", "done 0 after 3"},
		},
		"five days of failures expire it": {
			func(s *queueScript) {
				s.p = Policy{DeadAfter: 1000 * h, Retry: []time.Duration{60 * h, 60*h - time.Second, time.Second}}
				s.apply(enqueued{s.now})
				s.apply(enqueued{s.now})
				for range 4 {
					s.fail(0, plain)
				}
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 4", "dead 1 after 0"},
		},
		"a process that stood still for a year expires nothing": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.fail(0, plain)
				s.fail(9000*h, plain)
				s.fail(0, nil)
			},
			[]string{"send 0", "send 0", "send 0", "done 0 after 3"},
		},
		"a clock that jumps during the first attempt gives nothing up": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.result(9000*h, plain)
				s.fail(0, plain)
				s.fail(0, nil)
			},
			[]string{"send 0", "send 0", "send 0", "done 0 after 3"},
		},
		"gone expires it at once": {
			func(s *queueScript) { s.apply(enqueued{s.now}); s.result(0, gone) },
			[]string{"send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 1"},
		},
		"what comes later probes it once each": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.result(0, gone)
				s.apply(enqueued{s.now})
				s.apply(enqueued{s.now})
				s.result(0, plain)
				s.result(0, gone)
			},
			[]string{"send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 1", "send 1", "dead 1 after 1", "send 2", "dead 2 after 1"},
		},
		"a success opens it again": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.result(0, gone)
				s.apply(enqueued{s.now})
				s.result(0, nil)
				s.apply(enqueued{s.now})
				s.result(0, gone)
			},
			[]string{
				"send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 1", "send 1", "tell receiver_recovered", "done 1 after 1",
				"send 2", "tell receiver_expired", "tell dead_letter", "dead 2 after 1",
			},
		},
		"dead letters are told once until a success": {
			func(s *queueScript) {
				for range 4 {
					s.apply(enqueued{s.now})
				}
				s.result(0, failure.Permanent(plain))
				s.result(0, failure.Permanent(plain))
				s.result(0, nil)
				s.result(0, failure.Permanent(plain))
			},
			[]string{"send 0", "tell dead_letter", "dead 0 after 1", "send 1", "dead 1 after 1", "send 2", "done 2 after 1", "send 3", "tell dead_letter", "dead 3 after 1"},
		},
		"72 hours and three failures give up a notification": {
			func(s *queueScript) {
				s.p.Retry = []time.Duration{72 * h, time.Second}
				s.apply(enqueued{s.now})
				for range 3 {
					s.fail(0, plain)
				}
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "tell dead_letter", "dead 0 after 3"},
		},
		"a withdrawal drops the head": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.apply(enqueued{s.now})
				s.result(0, plain)
				s.withdrawn = []uint64{0}
				s.apply(recordStored{At: s.now, Markers: 1})
				s.fail(0, nil)
			},
			[]string{"send 0", "drop 0", "send 1", "done 1 after 1"},
		},
		"an attempt in flight that succeeds is delivered": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.withdrawn = []uint64{0}
				s.apply(recordStored{At: s.now, Markers: 1})
				s.result(0, nil)
			},
			[]string{"send 0", "done 0 after 1"},
		},
		"an attempt in flight that fails is not made again": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.withdrawn = []uint64{0}
				s.apply(recordStored{At: s.now, Markers: 1})
				s.result(0, failure.Permanent(plain))
			},
			[]string{"send 0", "drop 0"},
		},
		"what is withdrawn is not dead": {
			func(s *queueScript) {
				for range 3 {
					s.apply(enqueued{s.now})
				}
				s.withdrawn = []uint64{0, 1}
				s.result(0, gone)
			},
			[]string{"send 0", "tell receiver_expired", "drop 0", "drop 1", "tell dead_letter", "dead 2 after 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &queueScript{t: t, now: t0}
			tt.do(s)
			if !slices.Equal(s.log, tt.want) {
				t.Errorf("got  %q\nwant %q", s.log, tt.want)
			}
		})
	}
}

func TestRecoveryTellsSinceWhen(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.fail(0, errors.New("500"))
	s.fail(0, failure.Gone(errors.New("410")))
	expired := s.now
	s.apply(enqueued{s.now})
	_, acts := s.p.apply(s.q, attemptEnded{At: s.now.Add(time.Hour), Attempt: s.q.Attempt, Outcome: outcomeOf(nil)}, nil)
	want := emitHealth{Seq: 1, Event: pipeline.HealthReceiverRecovered, Since: expired, Count: 2, Expired: true}
	if acts[0] != want {
		t.Errorf("got %+v, want %+v", acts[0], want)
	}
}

func TestClockSetBack(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, tt := range map[string]struct {
		err  error
		want time.Duration
	}{
		"schedule":    {errors.New("500"), 5 * time.Second},
		"retry after": {failure.RetryAfter(errors.New("429"), time.Hour), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := &queueScript{t: t, now: t0}
			s.apply(enqueued{s.now})
			s.result(0, tt.err)
			back := t0.Add(-year)
			q, acts := s.p.apply(s.q, woken{back}, nil)
			if want := []action{scheduleWake{At: back.Add(tt.want), AtStart: true}}; !slices.Equal(acts, want) {
				t.Errorf("got %v, want %v", acts, want)
			}
			if !q.TriedSince.Equal(back) || !q.FailingSince.Equal(back) {
				t.Errorf("first %s, failing since %s; want both at %s", q.TriedSince, q.FailingSince, back)
			}
		})
	}
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	s.result(0, nil)
	if q, _ := s.p.apply(s.q, woken{t0.Add(-year)}, nil); q.PruneAt.After(t0.Add(-year + defaultRemember)) {
		t.Errorf("what is remembered is looked through at %s", q.PruneAt)
	}
	// The delay is not known.
	q := Queue{Next: 1, Due: t0.Add(year)}
	if q, _ = s.p.apply(q, woken{t0}, nil); q.Due.Sub(t0) != 24*time.Hour*6/5 {
		t.Errorf("due %s later, want after the longest delay that there is", q.Due.Sub(t0))
	}
}

func TestManyWithdrawnAreDroppedInBatches(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	const n = 2*dropBatch + 7
	for i := range uint64(n) {
		s.apply(enqueued{s.now})
		s.withdrawn = append(s.withdrawn, i)
	}
	s.apply(enqueued{s.now})
	s.result(0, errors.New("500"))
	for i := range 2 {
		if got, want := s.q.Pending(), n+1-(i+1)*dropBatch; got != want {
			t.Errorf("%d are pending, want %d", got, want)
		}
		s.apply(woken{s.now})
	}
	if got := s.q.Pending(); got != 1 {
		t.Errorf("%d are pending, want 1", got)
	}
}
