//go:build unix

package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// BenchmarkThousandReceivers takes notifications from the log to 1,000 webhooks, and posts
// the same bodies with a bare client: ratio is the rate of the one to that of the other. It does so on
// the disk of the machine, and on one that takes 5 ms longer for each write that is synced.
func BenchmarkThousandReceivers(b *testing.B) {
	b.Run("disk", func(b *testing.B) { thousandReceivers(b, local.Config{Dir: b.TempDir()}) })
	b.Run("slow", func(b *testing.B) {
		fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		}))
		db, err := store.Open(store.Options{Dir: b.TempDir(), FS: fs, Gather: local.Gather})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		thousandReceivers(b, local.Config{Store: db})
	})
}

func thousandReceivers(b *testing.B, cfg local.Config) {
	const receivers, atOnce = 1000, 128
	var arrived sync.WaitGroup
	r := newCountingServer(b, func() { arrived.Done() })
	tr := startDeliveryOver(b, newWebhooks(b, r.URL, "r", receivers), cfg)
	arrived.Add(receivers)
	publish(b, tr, "r", receivers, 0, receivers) // connects
	arrived.Wait()

	arrived.Add(b.N)
	used := processor(b)
	b.ResetTimer()
	publish(b, tr, "r", receivers, receivers, receivers+b.N)
	arrived.Wait()
	b.StopTimer()
	ours := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(float64((processor(b)-used).Microseconds())/float64(b.N), "cpu-us/delivery")

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	defer client.CloseIdleConnections()
	arrived.Add(b.N)
	used = processor(b)
	start := time.Now()
	var next atomic.Int64
	var posts sync.WaitGroup
	for range atOnce {
		posts.Go(func() {
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				body, err := json.Marshal(addressed("bare", i).Notification)
				if err != nil {
					b.Error(err)
				}
				resp, err := client.Post(fmt.Sprint(r.URL, "/", i%receivers), "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	posts.Wait()
	bare := float64(b.N) / time.Since(start).Seconds()
	b.ReportMetric(float64((processor(b)-used).Microseconds())/float64(b.N), "bare-cpu-us/delivery")
	b.ReportMetric(ours, "deliveries/s")
	b.ReportMetric(bare, "bare/s")
	b.ReportMetric(ours/bare, "ratio")
}

// BenchmarkAmongDead delivers to 500 healthy receivers alone, and then to as many among
// 500 that accept connections and never answer, which come first: ratio is the second rate
// to the first.
func BenchmarkAmongDead(b *testing.B) {
	const healthy, dead = 500, 500
	rate := func(dead int) float64 {
		var arrived sync.WaitGroup
		r := newCountingServer(b, func() { arrived.Done() })
		hole, _ := newUnresponsiveServer(b)
		to := make(map[string]pipeline.Sink)
		for i := range healthy {
			to[fmt.Sprint("r", i)] = newWebhook(b, fmt.Sprint(r.URL, "/", i))
		}
		for i := range dead {
			to[fmt.Sprint("dead", i)] = newWebhook(b, hole)
		}
		tr := startDelivery(b, to)
		publish(b, tr, "dead", max(dead, 1), 0, 2*dead)
		arrived.Add(b.N)
		start := time.Now()
		publish(b, tr, "r", healthy, 0, b.N)
		arrived.Wait()
		return float64(b.N) / time.Since(start).Seconds()
	}
	alone := rate(0)
	among := rate(dead)
	b.ReportMetric(alone, "alone/s")
	b.ReportMetric(among, "among/s")
	b.ReportMetric(among/alone, "ratio")
}

// BenchmarkOneReceiver delivers what waits for one webhook, several in each attempt, and then
// one by one: ratio is the first rate to the second.
func BenchmarkOneReceiver(b *testing.B) {
	rate := func(wrap func(pipeline.Sink) pipeline.Sink) float64 {
		var arrived sync.WaitGroup
		r := newCountingServer(b, func() { arrived.Done() })
		tr := startDelivery(b, map[string]pipeline.Sink{"r0": wrap(newWebhook(b, r.URL))})
		arrived.Add(b.N)
		start := time.Now()
		publish(b, tr, "r", 1, 0, b.N)
		arrived.Wait()
		return float64(b.N) / time.Since(start).Seconds()
	}
	batches := rate(func(s pipeline.Sink) pipeline.Sink { return s })
	alone := rate(func(s pipeline.Sink) pipeline.Sink { return pipeline.SinkFunc(s.Deliver) })
	b.ReportMetric(batches, "batches/s")
	b.ReportMetric(alone, "alone/s")
	b.ReportMetric(batches/alone, "ratio")
}

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
		tr := startDelivery(b, map[string]pipeline.Sink{"a0": sink})
		publish(b, tr, "a", 1, 0, waiting+b.N)
		for st := tr.State(flow.GroupDelivery, "a0"); ; time.Sleep(10 * time.Millisecond) {
			q, err := delivery.Load(st)
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
	w := newWebhook(b, "http://"+l.Addr().String())
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

// processor is the processor time that the process has used.
func processor(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Error(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// memory is what the process uses of heap and stacks, in bytes.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
