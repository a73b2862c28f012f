package delivery

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/txtest"
)

// slots returns how many slots are in use: of none, fast, slow.
func slots(r *poolFixture) [slowSlot + 1]int {
	r.d.pool.mu.Lock()
	defer r.d.pool.mu.Unlock()
	return r.d.pool.usedSlots
}

func hangUntilDone(ctx context.Context, _ pipeline.Notification) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestHangingReceiversHoldUpNobody has more hanging receivers than fast slots.
func TestHangingReceiversHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hanging, free = 64, 1000
		sinks := make(map[string]pipeline.Sink)
		release := make(chan struct{})
		for i := range hanging {
			sinks[fmt.Sprint("hang", i)] = pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { <-release; return nil })
		}
		s := &recorder{}
		for i := range free {
			sinks[fmt.Sprint("free", i)] = s
		}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: sinks, Fast: 8, Slow: 64, AttemptTimeout: time.Hour})
		for i := range hanging {
			r.notify(fmt.Sprint("hang", i), "x")
		}
		for i := range free {
			r.notify(fmt.Sprint("free", i), "x")
		}
		time.Sleep(hanging/8*maxFastTime + maxFastTime)
		synctest.Wait()
		if got := len(s.calls); got != free {
			t.Errorf("%d free receivers were served, want %d", got, free)
		}
		if got, want := slots(r), ([3]int{0, 0, hanging}); got != want {
			t.Errorf("slots in use %v, want %v", got, want)
		}
		if r.d.Idle(0) {
			t.Error("idle with attempts under way")
		}
		close(release)
		synctest.Wait()
		if got, want := slots(r), ([3]int{}); got != want {
			t.Errorf("slots in use %v, want %v", got, want)
		}
		r.stop()
	})
}

func TestFullSlowSlotsCutAttemptsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sinks := make(map[string]pipeline.Sink)
		for i := range 3 {
			sinks[fmt.Sprint(i)] = pipeline.SinkFunc(hangUntilDone)
		}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: sinks, Fast: 3, Slow: 1})
		for name := range sinks {
			r.notify(name, "x")
		}
		time.Sleep(maxFastTime + time.Millisecond)
		synctest.Wait()
		cut := 0
		for name := range maps.Keys(sinks) {
			if q := r.queue(name); q.Reason == errCutShort.Error() && q.Tries == 1 {
				cut++
			}
		}
		if cut != 2 {
			t.Errorf("%d attempts were cut short, want 2", cut)
		}
		if got, want := slots(r), ([3]int{0, 0, 1}); got != want {
			t.Errorf("slots in use %v, want %v", got, want)
		}
		r.stop()
		if !r.d.Idle(0) {
			t.Error("not idle after the end")
		}
	})
}

// TestTimeoutOfASink: the timeout of an attempt is that of its sink.
func TestTimeoutOfASink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(map[string]time.Duration)
		var mu sync.Mutex
		at := func(name string) pipeline.Sink {
			return pipeline.SinkFunc(func(ctx context.Context, _ pipeline.Notification) error {
				began := time.Now()
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				took[name] = time.Since(began)
				return errors.New("too late")
			})
		}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{
			"default": at("default"), "short": registry.LimitTime(at("short"), 2*time.Second), "long": registry.LimitTime(at("long"), time.Minute),
		}, Policy: Policy{Retry: []time.Duration{time.Hour}}})
		if got := r.d.LongestAttempt(); got != time.Minute {
			t.Errorf("the longest attempt is %v, want 1m", got)
		}
		for _, name := range []string{"default", "short", "long"} {
			r.notify(name, "x")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := map[string]time.Duration{"default": pipeline.DefaultTimeout, "short": 2 * time.Second, "long": time.Minute}
		if mu.Lock(); !maps.Equal(took, want) {
			t.Errorf("attempts took %v, want %v", took, want)
		}
		mu.Unlock()
		r.stop()
	})
}

// TestCutAttemptKeepsWhatWasSaid: an attempt that is cut short keeps the answer of the receiver.
func TestCutAttemptKeepsWhatWasSaid(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, errCutShort.Error()},
		{errors.New("broken off"), errCutShort.Error()},
		{failure.Ambiguous(errors.New("no answer")), errCutShort.Error() + ambiguousSuffix},
		{failure.Refused(errors.New("422")), "422"},
		{failure.RetryAfter(errors.New("429"), time.Hour), "429"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cut := pipeline.SinkFunc(func(ctx context.Context, _ pipeline.Notification) error { <-ctx.Done(); return c.err })
			r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"slow": pipeline.SinkFunc(hangUntilDone), "cut": cut}, Fast: 1, Slow: 1})
			r.notify("slow", "x")
			time.Sleep(maxFastTime + time.Millisecond)
			r.notify("cut", "x")
			time.Sleep(maxFastTime + time.Millisecond)
			synctest.Wait()
			if q := r.queue("cut"); q.Reason != c.want || q.Tries != 1 {
				t.Errorf("%v became %+v, want the reason %q", c.err, q, c.want)
			}
			r.stop()
		})
	}
}

// TestSinkThatIgnoresItsContext: it blocks its receiver, but no slot that others need.
func TestSinkThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &recorder{}
		sinks := map[string]pipeline.Sink{
			"slow":  pipeline.SinkFunc(hangUntilDone),
			"stuck": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { <-release; return nil }),
			"free":  s,
		}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: sinks, Fast: 1, Slow: 1})
		r.notify("slow", "x")
		time.Sleep(maxFastTime + time.Millisecond)
		r.notify("stuck", "x")
		r.notify("free", "x")
		time.Sleep(2 * maxFastTime)
		synctest.Wait()
		if got, want := s.got(), "[x]"; got != want {
			t.Errorf("the free receiver got %s, want %s", got, want)
		}
		close(release)
		synctest.Wait()
		if q := r.queue("stuck"); q.Pending() != 0 {
			t.Errorf("a delivery that succeeded after its time does not count: %+v", q)
		}
		r.stop()
	})
}

func TestFailedReceiverStartsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pipeline.SinkFunc(func(ctx context.Context, _ pipeline.Notification) error {
			ctx, cancel := context.WithTimeout(ctx, 900*time.Millisecond)
			defer cancel()
			return hangUntilDone(ctx, pipeline.Notification{})
		})
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": s}})
		r.notify("a", "x")
		synctest.Wait()
		if got, want := slots(r), ([3]int{0, 1, 0}); got != want {
			t.Errorf("first attempt: slots %v, want %v", got, want)
		}
		// 0.9 s, then the delay of 5 s, then the next tick of the fixture.
		time.Sleep(6100 * time.Millisecond)
		synctest.Wait()
		if got, want := slots(r), ([3]int{0, 0, 1}); got != want {
			t.Errorf("second attempt: slots %v, want %v", got, want)
		}
		r.stop()
	})
}

func TestRunTwice(t *testing.T) {
	d := NewDelivery(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := d.Run(ctx); err == nil {
		t.Error("the second Run succeeded")
	}
}

var (
	crowd     = flag.Int("sinks.receivers", 1_000, "receivers of TestCrowd, half of which hang")
	crowdFor  = flag.Duration("sinks.for", 12*time.Minute, "how long TestCrowd lasts, by its own clock")
	crowdSeed = flag.Uint64("sinks.seed", 1, "seed of TestCrowd")
)

// waitTimes are how long healthy receivers waited.
type waitTimes struct {
	mu    sync.Mutex
	since map[string]time.Time
	all   []time.Duration
}

func (w *waitTimes) began(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since[id] = time.Now()
}

func (w *waitTimes) ended(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, time.Since(w.since[id]))
	delete(w.since, id)
}

// TestCrowd runs the real queues and the real pool, by a clock of its own, over receivers
// of which half hang for ever. Each gets a notification every ten minutes; a healthy one
// answers after 0.1 s. Of these, 99 of 100 notifications are delivered within a second,
// also while the hanging ones fail for the first time.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 10 * time.Minute
		t.Logf("%d receivers for %v, seed %d", *crowd, *crowdFor, *crowdSeed)
		rnd := rand.New(rand.NewPCG(*crowdSeed, 0))
		w := &waitTimes{since: make(map[string]time.Time)}
		hangs := pipeline.SinkFunc(hangUntilDone)
		healthy := pipeline.SinkFunc(func(ctx context.Context, n pipeline.Notification) error {
			select {
			case <-time.After(100 * time.Millisecond):
				w.ended(n.ID)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		names := make([]string, *crowd)
		sinks := make(map[string]pipeline.Sink, *crowd)
		for i := range names {
			names[i] = fmt.Sprint("healthy", i)
			sinks[names[i]] = healthy
			if i%2 == 1 {
				names[i] = fmt.Sprint("hanging", i)
				sinks[names[i]] = hangs
			}
		}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: sinks})
		gap := every / time.Duration(len(names))
		notified := 0
		for began := time.Now(); time.Since(began) < *crowdFor; notified++ {
			name, id := names[rnd.IntN(len(names))], fmt.Sprint(notified)
			if strings.HasPrefix(name, "healthy") {
				w.began(id)
			}
			r.notify(name, id)
			time.Sleep(time.Duration(2 * rnd.Float64() * float64(gap)))
		}
		time.Sleep(time.Minute)
		r.stop()
		slices.Sort(w.all)
		n := len(w.all)
		if n < notified/3 || len(w.since) > 0 {
			t.Fatalf("%d of %d notifications were delivered, %d healthy ones wait", n, notified, len(w.since))
		}
		p99 := w.all[n*99/100]
		t.Logf("%d notifications to healthy receivers: median %v, p99 %v, longest %v", n, w.all[n/2], p99, w.all[n-1])
		if p99 >= time.Second {
			t.Errorf("1 of 100 healthy receivers waited for %v or longer, want less than a second", p99)
		}
	})
}
