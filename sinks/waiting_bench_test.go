package sinks_test

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// BenchmarkWaiting claims and finishes notifications from the queue of one receiver, on
// disk, with few and with 100,000 waiting behind them: ratio is the cost of the latter to
// that of the former.
func BenchmarkWaiting(b *testing.B) {
	const few, many = 1000, 100_000
	cost := func(waiting int) time.Duration {
		gate := make(chan struct{})
		var delivered sync.WaitGroup
		var n atomic.Int64
		limit := int64(b.N)
		delivered.Add(b.N)
		sink := pipeline.SinkFunc(func(ctx context.Context, _ pipeline.Notification) error {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
			if n.Add(1) <= limit {
				delivered.Done()
				return nil
			}
			<-ctx.Done() // the others wait on
			return ctx.Err()
		})
		tr := deliver(b, map[string]pipeline.Sink{"a0": sink})
		publish(b, tr, "a", 1, 0, waiting+b.N)
		for st := tr.State(flow.GroupDelivery, "a0"); ; time.Sleep(10 * time.Millisecond) {
			q, err := sinks.Load(st)
			if err != nil {
				b.Fatal(err)
			}
			if q.Pending() == waiting+b.N {
				break // all of them stand in the queue
			}
		}
		start := time.Now()
		close(gate)
		delivered.Wait()
		took := time.Since(start)
		return took / time.Duration(b.N)
	}
	short := cost(few)
	b.ResetTimer()
	long := cost(many)
	b.ReportMetric(float64(short.Microseconds()), "few-µs")
	b.ReportMetric(float64(long.Microseconds()), "many-µs")
	b.ReportMetric(float64(long)/float64(short), "ratio")
}

// BenchmarkInFlight holds 4,000 webhooks in flight, to a receiver that never answers, and
// reports the memory that each takes, stacks included. It does so once, whatever b.N is.
func BenchmarkInFlight(b *testing.B) {
	const inFlight = 4000
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	w := hook(b, "http://"+l.Addr().String())
	ctx, cancel := context.WithCancel(b.Context())
	before := memory()
	var ended sync.WaitGroup
	for i := range inFlight {
		ended.Go(func() { _ = w.Deliver(ctx, addressed("a0", i).Notification) })
	}
	var held []net.Conn
	for range inFlight {
		c, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil { // the request is on its way
			b.Fatal(err)
		}
		held = append(held, c)
	}
	b.ReportMetric(float64(memory()-before)/inFlight/1024, "KB/flight")
	cancel()
	ended.Wait()
	for _, c := range held {
		c.Close()
	}
	l.Close()
}

// memory is what the process uses of heap and stacks, in bytes.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
