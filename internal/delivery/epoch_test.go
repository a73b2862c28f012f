package delivery

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// laneFixture is the lane of a Delivery that leaves its process and comes back.
type laneFixture struct {
	t     *testing.T
	store *txtest.Store
	d     *Delivery
	sink  *recorder

	mu    sync.Mutex
	epoch uint64
	// Post returns postErr, and keeps the message in posted if that is nil. away says that the process does not
	// own the lane.
	postErr error
	posted  []flow.Message
	away    bool
}

func newLaneFixture(t *testing.T, sink *recorder) *laneFixture {
	l := &laneFixture{t: t, store: txtest.New(), sink: sink}
	l.d = NewDelivery(Config{
		Sinks: map[string]pipeline.Sink{"a": sink}, Poster: l,
		Owned: func(string) bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.away },
		Epoch: func(string) uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.epoch },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = l.d.Run(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return l
}

// Post is that of a flow.Poster.
func (l *laneFixture) Post(_ context.Context, m flow.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.postErr == nil {
		l.posted = append(l.posted, m)
	}
	return l.postErr
}

// takePosted returns the messages that were posted since the last call.
func (l *laneFixture) takePosted() []flow.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	ms := l.posted
	l.posted = nil
	return ms
}

func (l *laneFixture) handle(ms ...flow.Message) {
	l.t.Helper()
	for _, m := range ms {
		if err := l.store.Handle(l.t.Context(), l.d, m); err != nil {
			l.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// lose makes the process lose the lane: the posted messages are dropped, and Post refuses others.
func (l *laneFixture) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posted, l.postErr, l.away = nil, flow.ErrMoved, true
}

// regain makes the lane take messages again, in a new epoch.
func (l *laneFixture) regain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.postErr, l.away = nil, false
	l.epoch++
}

// wantState handles the posted results and checks what the sink got and what is pending.
func (l *laneFixture) wantState(got string, pending int) {
	l.t.Helper()
	for ms := l.takePosted(); len(ms) > 0; ms = l.takePosted() {
		l.handle(ms...)
	}
	q, err := state{l.store.Begin().State("a")}.loadQueue()
	if err != nil {
		l.t.Fatal(err)
	}
	if l.sink.got() != got || q.Pending() != pending {
		l.t.Errorf("the sink got %s and %d are pending, want %s and %d", l.sink.got(), q.Pending(), got, pending)
	}
}

// TestAttemptOfALostLane: a lane that fails loses the results that it has and refuses others. The attempts count
// as not made, and are made again when it works again.
func TestAttemptOfALostLane(t *testing.T) {
	for name, refused := range map[string]bool{"lost": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				l := newLaneFixture(t, &recorder{do: func(context.Context, pipeline.Notification) error { <-release; return nil }})
				l.handle(notification(t, "a", "", "x"))
				if refused {
					l.lose()
				}
				close(release)
				synctest.Wait()
				l.lose()
				l.regain()
				l.handle(l.store.Start(time.Now())...)
				l.wantState("[x x]", 0)
				l.handle(notification(t, "a", "", "y"))
				l.wantState("[x x y]", 0)
			})
		})
	}
}

// TestResultOfAnEarlierEpoch: an attempt that outlives its lane says nothing about the one that repeats it.
func TestResultOfAnEarlierEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan error)
		l := newLaneFixture(t, &recorder{do: func(context.Context, pipeline.Notification) error { return <-answers }})
		l.handle(notification(t, "a", "", "x"))
		l.lose()
		l.regain()
		l.handle(l.store.Start(time.Now())...)
		answers <- errors.New("503") // to the first: goroutines receive in the order in which they came
		synctest.Wait()
		l.wantState("[x x]", 1)
		answers <- nil
		synctest.Wait()
		l.wantState("[x x]", 0)
	})
}

// TestNotificationBeforeTheWakeOfTheStart: after a rebalance the messages of the log come before the wakes
// of the start. The first of them replaces the wake that would notice the lost attempt.
func TestNotificationBeforeTheWakeOfTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaneFixture(t, &recorder{})
		l.handle(notification(t, "a", "", "x"))
		l.lose()
		l.regain()
		l.handle(notification(t, "a", "", "y"))
		l.wantState("[x x y]", 0)
	})
}

// TestReceiversAreForgotten: what a process knows of a receiver that left does not stay for ever.
func TestReceiversAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaneFixture(t, &recorder{})
		l.handle(notification(t, "a", "", "x"))
		l.lose()
		known := func() int { receivers, attempts := poolSnapshot(l.d.pool); return len(receivers) + len(attempts) }
		time.Sleep(forgetEvery + time.Second)
		if n := known(); n != 2 {
			t.Errorf("after an hour away the process knows %d records, want the receiver and its attempt", n)
		}
		time.Sleep(forgetEvery)
		if n := known(); n != 0 || l.d.pool.attempts.Len() != 0 {
			t.Errorf("after two hours away the process knows %d records", n)
		}
		l.regain()
		l.handle(*flow.WakeMessage(flow.GroupDelivery, flow.TopicNotifications, "a", time.Now()))
		l.wantState("[x x]", 0)
	})
}

// poolSnapshot returns what a pool knows, without the attempts of transactions that may be undone.
func poolSnapshot(p *pool) (map[string]receiverInfo, map[string]stored.Lease[uint64, *inFlightAttempt]) {
	attempts := make(map[string]stored.Lease[uint64, *inFlightAttempt])
	p.attempts.Each(func(receiver string, l stored.Lease[uint64, *inFlightAttempt]) { attempts[receiver] = l })
	return maps.Clone(p.receivers), attempts
}
