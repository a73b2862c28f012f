package delivery

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
)

// TestStandstill: failures from before a standstill do not count towards giving up.
func TestStandstill(t *testing.T) {
	const h = time.Hour
	plain := errors.New("500")
	failing := []string{"send 0", "send 0", "send 0", "tell receiver_failing", "send 0"}
	expired := []string{"tell receiver_expired", "tell dead_letter", "dead 0 after 6"}
	three := func(s *queueScript) {
		s.apply(enqueued{s.now})
		for range 3 {
			s.fail(0, plain)
		}
	}
	for name, tt := range map[string]struct {
		do   func(s *queueScript)
		want []string
	}{
		"a receiver is expired after three more failures": {
			func(s *queueScript) { three(s); s.fail(144*h, plain); s.fail(0, plain); s.fail(0, plain) },
			slices.Concat(failing, []string{"send 0", "send 0"}, expired),
		},
		"a notification is given up after three more failures": {
			func(s *queueScript) {
				s.p.ExpireAfter = 1000 * h
				three(s)
				s.fail(144*h, plain)
				s.fail(0, plain)
				s.fail(0, plain)
				s.p.Retry = []time.Duration{72 * h, time.Second}
				three(s) // of the next one it was before
			},
			slices.Concat(failing, []string{"send 0", "send 0", "tell dead_letter", "dead 0 after 6", "send 1", "send 1", "send 1", "dead 1 after 3"}),
		},
		"an attempt is in flight meanwhile": {
			func(s *queueScript) {
				three(s)
				s.now = s.q.Due
				s.apply(woken{s.now})
				s.result(144*h, plain)
				s.fail(0, plain)
				s.fail(0, plain)
			},
			slices.Concat(failing, []string{"send 0", "send 0"}, expired),
		},
		"to be held by a rate is none": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				for range 4 {
					s.now = later(s.now, s.q.Due)
					s.apply(woken{s.now})
					s.resultAfterRateWait(24*h, 0, plain)
				}
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "send 0", "tell dead_letter", "dead 0 after 4"},
		},
		"to be held for longer is one": {
			func(s *queueScript) {
				three(s)
				s.now = s.q.Due
				s.apply(woken{s.now})
				s.resultAfterRateWait(24*h, 144*h, plain)
				s.fail(0, plain)
				s.fail(0, plain)
			},
			slices.Concat(failing, []string{"send 0", "send 0"}, expired),
		},
		"an attempt in flight is lost": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				s.apply(enqueued{s.now})
				for range 3 {
					s.fail(0, failure.Refused(plain)) // and the next begins at once
				}
				s.now = s.now.Add(144 * h)
				s.apply(attemptLost{s.now})
				s.result(0, plain)
				s.fail(0, nil)
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "tell dead_letter", "dead 0 after 3", "send 1", "send 1", "send 1", "tell receiver_recovered", "done 1 after 2"},
		},
		"a success ends the count": {
			func(s *queueScript) {
				three(s)
				s.fail(144*h, nil)
				s.p = Policy{DeadAfter: 1000 * h, Retry: []time.Duration{60 * h}}
				three(s)
			},
			slices.Concat(failing, []string{"tell receiver_recovered", "done 0 after 4", "send 1", "send 1", "send 1", "tell receiver_expired", "tell dead_letter", "dead 1 after 3"}),
		},
		"an empty queue is none": {
			func(s *queueScript) {
				s.apply(enqueued{s.now})
				for range 3 {
					s.fail(0, failure.Refused(plain))
				}
				s.now = s.now.Add(144 * h)
				s.apply(enqueued{s.now})
				s.result(0, plain)
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "tell dead_letter", "dead 0 after 3", "send 1", "tell receiver_expired", "dead 1 after 1"},
		},
		"an empty queue with a back-off is none": {
			func(s *queueScript) {
				three(s)
				s.withdrawn = []uint64{0}
				s.apply(recordStored{At: s.now, Markers: 1})
				s.now = s.now.Add(144 * h)
				s.apply(enqueued{s.now})
				s.result(0, plain)
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "drop 0", "send 1", "tell receiver_expired", "tell dead_letter", "dead 1 after 1"},
		},
		"an hour late is none": {
			func(s *queueScript) {
				s.p.ExpireAfter = 3*h + time.Minute
				s.apply(enqueued{s.now})
				for range 4 {
					s.now = later(s.now, s.q.Due)
					s.fail(h, plain)
				}
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_failing", "send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 4"},
		},
		"as late as the delay before is none": {
			func(s *queueScript) {
				s.p = Policy{DeadAfter: 1000 * h, Retry: []time.Duration{30 * h}}
				s.apply(enqueued{s.now})
				s.result(0, plain)
				for range 2 {
					s.now = s.q.Due
					s.fail(30*h, plain)
				}
			},
			[]string{"send 0", "send 0", "send 0", "tell receiver_expired", "tell dead_letter", "dead 0 after 3"},
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

// TestBackOffOutlivesTheWithdrawn: the notification behind a dropped one keeps the back-off.
func TestBackOffOutlivesTheWithdrawn(t *testing.T) {
	for name, tt := range map[string]struct {
		errs []error
		want time.Duration
	}{
		"the receiver fails":   {[]error{errors.New("500"), errors.New("500")}, 30 * time.Second},
		"it failed once":       {[]error{errors.New("500"), failure.Refused(errors.New("400"))}, 30 * time.Second},
		"it refused that only": {[]error{failure.Refused(errors.New("400")), failure.Refused(errors.New("400"))}, 0},
	} {
		s := &queueScript{t: t, now: t0}
		for range 3 {
			s.apply(enqueued{s.now})
		}
		for _, err := range tt.errs {
			s.fail(0, err)
		}
		s.withdrawn = []uint64{0, 1}
		s.apply(recordStored{At: s.now, Markers: 1})
		if got := max(s.q.Due.Sub(s.now), 0); got != tt.want || s.q.Pending() != 1 || s.q.InFlight != (tt.want == 0) {
			t.Errorf("%s: %+v, which waits for %s; want it to wait for %s", name, s.q, got, tt.want)
		}
	}
}

// TestWhatWasNeverTriedHasNoFirst: a lost first attempt leaves no TriedSince.
func TestWhatWasNeverTriedHasNoFirst(t *testing.T) {
	s := &queueScript{t: t, now: t0}
	s.apply(enqueued{s.now})
	back := t0.Add(70 * time.Hour)
	s.apply(attemptLost{back})
	if !s.q.TriedSince.Equal(back) {
		t.Errorf("lost, it was first tried at %s, want %s", s.q.TriedSince, back)
	}
	s.now = back
	s.result(0, errors.New("500"))
	s.fail(0, errors.New("500"))
	s.apply(woken{s.q.Due})
	s.apply(attemptLost{back.Add(80 * time.Hour)})
	if !s.q.TriedSince.Equal(back) {
		t.Errorf("lost after failures, it was first tried at %s, want still %s", s.q.TriedSince, back)
	}
}
