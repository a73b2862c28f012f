package sinks

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/internal/txtest"
	"github.com/vokter/vokter/pipeline"
)

// TestRate: a sink gets no more than its rate, the others wait for nobody, and what waits
// at the end is left for the next process.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var slow, fast []time.Duration
		at := func(list *[]time.Duration) pipeline.Sink {
			return pipeline.SinkFunc(func(context.Context, pipeline.Notification) error {
				*list = append(*list, time.Since(start).Round(time.Second))
				return nil
			})
		}
		store := txtest.New()
		cfg := Config{Sinks: map[string]pipeline.Sink{"slow": pipeline.LimitRate(at(&slow), 0.1, 2), "fast": at(&fast)}}
		r := newRig(t, store, cfg)
		for i := range 5 {
			r.notify("slow", fmt.Sprint("s", i))
			r.notify("fast", fmt.Sprint("f", i))
		}
		time.Sleep(21 * time.Second)
		if got, want := fmt.Sprint(slow), "[0s 0s 10s 20s]"; got != want {
			t.Errorf("the slow sink was used at %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(fast), "[0s 0s 0s 0s 0s]"; got != want {
			t.Errorf("the other was used at %s, want %s", got, want)
		}
		if r.d.Idle() {
			t.Error("it is idle while an attempt waits")
		}
		r.stop()
		if !r.d.Idle() {
			t.Error("it is not idle after its end")
		}
		r = newRig(t, store, cfg)
		time.Sleep(time.Minute)
		r.stop()
		if len(slow) != 5 {
			t.Errorf("%d attempts after a restart, want 5", len(slow))
		}
	})
}
