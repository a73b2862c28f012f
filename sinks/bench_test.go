package sinks

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// BenchmarkDelivery takes notifications through queue and pool to sinks in the process,
// over a store of maps, with one lane.
func BenchmarkDelivery(b *testing.B) {
	for _, receivers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("receivers=%d", receivers), func(b *testing.B) {
			var arrived sync.WaitGroup
			arrived.Add(b.N)
			sink := pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { arrived.Done(); return nil })
			lane := make(chan flow.Message, 64)
			cfg := Config{Sinks: make(map[string]pipeline.Sink), Poster: chanPoster(lane)}
			for i := range receivers {
				cfg.Sinks[fmt.Sprint(i)] = sink
			}
			d := NewDelivery(cfg)
			store := txtest.New()
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := d.Run(ctx); err != nil {
					b.Error(err)
				}
			})
			wg.Go(func() {
				for {
					select {
					case m := <-lane:
						if err := store.Handle(ctx, d, m); err != nil {
							b.Error(err)
						}
					case <-ctx.Done():
						return
					}
				}
			})
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m, err := flow.Addressed{
					Receiver: pipeline.Receiver{Sink: fmt.Sprint(i % receivers)},
					Notification: pipeline.Notification{
						ID: fmt.Sprint("N", i), URL: "https://example.com/", Status: pipeline.StatusOK,
						Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "Argus", Snippet: "... Argus ..."}},
					},
				}.Message()
				if err != nil {
					b.Fatal(err)
				}
				lane <- m
			}
			arrived.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			b.StopTimer()
			cancel()
			wg.Wait()
		})
	}
}

// chanPoster posts into a channel.
type chanPoster chan<- flow.Message

func (p chanPoster) Post(ctx context.Context, m flow.Message) error {
	select {
	case p <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
