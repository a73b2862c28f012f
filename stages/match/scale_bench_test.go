package match

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// subscribers returns the state of a page with n subscriptions, each with a keyword of its own and
// one of a thousand others.
func subscribers(b *testing.B, n int) *txtest.Store {
	b.Helper()
	st := txtest.New()
	for i := range n {
		keepSubscription(st, subscriber(i+1))
	}
	return st
}

func subscriber(i int) flow.Stamped {
	s := newStamped(i, i, 0, flow.Forever, fmt.Sprint("keyword", i))
	s.Incarnation = fmt.Sprintf("%026d", i)
	s.Subscription.Sinks = []string{"hook"}
	return s
}

var manySubscribers = flag.Int("match.subscribers", 100_000, "the largest number of subscriptions in BenchmarkSubscribers")

// BenchmarkSubscribers shows what a page with many subscriptions costs: a change that no keyword
// is in, one more subscription before each change, and the start, which reads all of them.
func BenchmarkSubscribers(b *testing.B) {
	for _, n := range []int{1_000, *manySubscribers} {
		st := subscribers(b, n)
		p := New(Config{})
		ctx := context.Background()
		r := rand.New(rand.NewPCG(1, 2))
		stamp, version := n, 0
		changes := make([]flow.Message, 64)
		next := func() flow.Message {
			version++
			m := changes[version%len(changes)]
			if m.Body == nil {
				c := unrelatedChange(r)
				c.Version = 1
				m = newMessage(flow.TypeChange, c)
				changes[version%len(changes)] = m
			}
			return m
		}
		change := func(b *testing.B) {
			if err := st.Handle(ctx, p, next()); err != nil {
				b.Fatal(err)
			}
			st.Take()
		}
		change(b)
		b.Run(fmt.Sprintf("%d/change", n), func(b *testing.B) {
			for b.Loop() {
				change(b)
			}
		})
		b.Run(fmt.Sprintf("%d/another", n), func(b *testing.B) {
			for b.Loop() {
				stamp++
				keepSubscription(st, subscriber(stamp))
				if err := st.Handle(ctx, p, newMessage(flow.TypeStamp, subscriber(stamp))); err != nil {
					b.Fatal(err)
				}
				change(b)
			}
		})
		b.Run(fmt.Sprintf("%d/build", n), func(b *testing.B) {
			var size float64
			for b.Loop() {
				p.cache = stored.NewCache[tableKey, *table](0)
				before := heapSize()
				t := newTestTable(p.cfg.Languages)
				if err := recordsOf(st.Begin(), page, tableKey{"inc", "doc"}).all(t.add); err != nil || t.index.len() < n {
					b.Fatal(errors.Join(err, fmt.Errorf("%d subscriptions", t.index.len())))
				}
				size = float64(heapSize()-before) / float64(n)
				runtime.KeepAlive(t)
			}
			b.ReportMetric(size, "B/subscription")
		})
	}
}

// heapSize is how many bytes are in use.
func heapSize() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
