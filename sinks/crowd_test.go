package sinks

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/txtest"
)

var (
	crowd     = flag.Int("sinks.receivers", 5_000, "receivers of TestCrowd, half of which hang")
	crowdFor  = flag.Duration("sinks.for", 12*time.Minute, "how long TestCrowd lasts, by its own clock")
	crowdSeed = flag.Uint64("sinks.seed", 1, "seed of TestCrowd")
)

// waits are how long healthy receivers waited.
type waits struct {
	mu    sync.Mutex
	since map[string]time.Time
	all   []time.Duration
}

func (w *waits) began(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since[id] = time.Now()
}

func (w *waits) ended(id string) {
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
		w := &waits{since: make(map[string]time.Time)}
		hangs := pipeline.SinkFunc(hang)
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
		r := newRig(t, txtest.New(), Config{Sinks: sinks})
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
