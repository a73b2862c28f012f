package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/txtest"
)

// outageSink is a receiver at a host that does not work until a time.
type outageSink struct {
	host  string
	until time.Time
	err   error

	mu       sync.Mutex
	attempts []time.Time
	got      []string
	at       []time.Time // when each of got came
}

func (s *outageSink) Host() string { return s.host }

func (s *outageSink) Batch() (notifications, atOnce int) { return 100, 1 }

func (s *outageSink) Deliver(_ context.Context, n pipeline.Notification) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, time.Now())
	if time.Now().Before(s.until) {
		return s.err
	}
	s.got, s.at = append(s.got, n.ID), append(s.at, time.Now())
	return nil
}

// countAttempts counts those before until.
func (s *outageSink) countAttempts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.attempts {
		if at.Before(s.until) {
			n++
		}
	}
	return n
}

var errDown = errors.New("down")

// TestOutage: what waited for a receiver through an outage is there at most 15 minutes after its end, in order and
// once. Other receivers do not notice.
func TestOutage(t *testing.T) {
	for outage, jitter := range map[time.Duration]float64{3 * time.Hour: 0.999, 8 * time.Hour: 0} {
		t.Run(fmt.Sprint(outage, " ", jitter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const waiting = 10_000
				down := &outageSink{host: "a.example", until: time.Now().Add(outage), err: errDown}
				well := &outageSink{host: "b.example"}
				r := newPoolFixture(t, txtest.New(), Config{
					Sinks: map[string]pipeline.Sink{"down": down, "well": well}, Jitter: func() float64 { return jitter },
				})
				defer r.stop()
				var want []string
				for i := range waiting {
					id := fmt.Sprint(i)
					want = append(want, id)
					r.notify("down", id)
				}
				time.Sleep(outage / 2)
				sent := time.Now()
				r.notify("well", "other")
				time.Sleep(time.Until(down.until) + 15*time.Minute + 2*time.Second) // wakes come each second
				synctest.Wait()
				down.mu.Lock()
				defer down.mu.Unlock()
				if !slices.Equal(down.got, want) {
					t.Errorf("%d of %d notifications came, or in another order", len(down.got), waiting)
				}
				if len(well.at) != 1 || well.at[0].Sub(sent) > time.Second {
					t.Errorf("another receiver got its notification at %v, want it at %v", well.at, sent)
				}
			})
		})
	}
}

// TestSignsOfRepair: a new notification, and a success of another receiver at the host, bring the next attempt forward,
// but not to less than a minute after the last failure, and not before the time that the receiver named.
func TestSignsOfRepair(t *testing.T) {
	const repaired = 3 * time.Hour
	for name, test := range map[string]struct {
		err error
		// sign is called 20 seconds after the repair.
		sign   func(r *poolFixture)
		within time.Duration
	}{
		"a new notification":  {errDown, func(r *poolFixture) { r.notify("down", "new") }, time.Minute},
		"a neighbour":         {errDown, func(r *poolFixture) { r.notify("neighbour", "other") }, time.Minute},
		"one at another host": {errDown, func(r *poolFixture) { r.notify("elsewhere", "other") }, 15 * time.Minute},
		"Retry-After":         {failure.RetryAfter(errDown, 40*time.Minute), func(r *poolFixture) { r.notify("down", "new") }, 20 * time.Minute},
		"a limit":             {failure.Limited(errDown, 14*time.Minute), func(r *poolFixture) { r.notify("neighbour", "other") }, 17 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down := &outageSink{host: "a.example", until: time.Now().Add(repaired), err: test.err}
				r := newPoolFixture(t, txtest.New(), Config{Jitter: func() float64 { return 0 }, Sinks: map[string]pipeline.Sink{
					"down": down, "neighbour": &outageSink{host: "a.example"}, "elsewhere": &outageSink{host: "b.example"},
				}})
				defer r.stop()
				r.notify("down", "old")
				time.Sleep(repaired + 20*time.Second)
				due := r.queue("down").Due
				test.sign(r)
				synctest.Wait()
				at := r.queue("down").Due
				early := at.IsZero() || at.Before(due)
				if want := test.within <= time.Minute; early != want {
					t.Errorf("the next attempt is at %v, before at %v; want it earlier: %t", at, due, want)
				}
				time.Sleep(test.within)
				synctest.Wait()
				down.mu.Lock()
				defer down.mu.Unlock()
				if len(down.got) == 0 || down.got[0] != "old" {
					t.Errorf("%v after the sign came %v", test.within, down.got)
				}
			})
		})
	}
}

// TestSignsAreBounded: many signs cause one attempt a minute.
func TestSignsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &outageSink{host: "a.example", until: time.Now().Add(time.Hour), err: errDown}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"down": down, "neighbour": &outageSink{host: "a.example"}}})
		defer r.stop()
		for i := range 3600 {
			r.notify("down", fmt.Sprint(i))
			r.notify("neighbour", fmt.Sprint("n", i))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := down.countAttempts(); n < 50 || n > 65 {
			t.Errorf("%d attempts within an hour of failure, want one a minute", n)
		}
	})
}
