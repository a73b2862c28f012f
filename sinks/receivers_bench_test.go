package sinks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks"
	"github.com/vokter/vokter/sinks/webhook"
)

// hook returns a webhook to a receiver of tests.
func hook(t testing.TB, rawURL any) pipeline.Sink {
	t.Helper()
	c := webhook.Config{URL: registry.NewSecret(fmt.Sprint(rawURL))}
	c.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// receiver takes posts and counts them.
type receiver struct {
	*httptest.Server
	got atomic.Int64
	// each is called for each post.
	each func()
}

func newReceiver(tb testing.TB, each func()) *receiver {
	r := &receiver{each: each}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if _, err := io.Copy(io.Discard, req.Body); err == nil {
			r.got.Add(1)
			r.each()
		}
	}))
	tb.Cleanup(r.Close)
	return r
}

// newHole accepts connections and never answers. It counts those that are open.
func newHole(tb testing.TB) (url string, open *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	open = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer c.Close()
				defer open.Add(-1)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "http://" + l.Addr().String(), open
}

// deliver runs a Delivery over the embedded transport in a directory, and returns what
// publishes to it.
func deliver(tb testing.TB, to map[string]pipeline.Sink) *local.Transport {
	tr, err := local.Open(local.Config{Dir: tb.TempDir(), Topics: map[string]local.Topic{
		flow.TopicNotifications: {Groups: []string{flow.GroupDelivery}},
		flow.TopicDead:          {Feedback: true},
		flow.TopicHealth:        {Feedback: true},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	if err := tr.Start(context.Background(), flow.Wiring{Bare: true}); err != nil {
		tb.Fatal(err)
	}
	d := sinks.NewDelivery(sinks.Config{Sinks: to, Poster: tr.Poster(flow.GroupDelivery, flow.TopicNotifications)})
	ctx, cancel := context.WithCancel(context.Background())
	messages, err := tr.Subscriber(flow.GroupDelivery).Subscribe(ctx, flow.TopicNotifications)
	if err != nil {
		tb.Fatal(err)
	}
	var pool, lanes sync.WaitGroup
	pool.Go(func() {
		if err := d.Run(ctx); err != nil {
			tb.Error(err)
		}
	})
	for range 16 {
		lanes.Go(func() {
			for msg := range messages {
				tx, _ := flow.TxFrom(msg.Context())
				m, err := tx.Message()
				if err != nil {
					panic(err)
				}
				if err := d.Process(msg.Context(), tx, m); err != nil {
					panic(err)
				}
				msg.Ack()
			}
		})
	}
	tb.Cleanup(func() {
		cancel()
		pool.Wait()
		if err := tr.Close(); err != nil {
			tb.Error(err)
		}
		lanes.Wait()
	})
	return tr
}

// addressed is notification i for the receiver name.
func addressed(name string, i int) flow.Addressed {
	return flow.Addressed{
		Receiver: pipeline.Receiver{Sink: name}, Document: "D", Subscription: "S",
		Notification: pipeline.Notification{
			ID: flow.DeriveID(name, fmt.Sprint(i)), URL: "https://example.com/", Status: pipeline.StatusOK, Type: pipeline.NotificationType,
			Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "... Argus' wakeful alertness ..."}},
		},
	}
}

// publish sends notifications first to end-1, in turn to the receivers named prefix and a
// number below receivers.
func publish(tb testing.TB, tr *local.Transport, prefix string, receivers, first, end int) {
	tb.Helper()
	for first < end {
		var ms []flow.Message
		for ; first < end && len(ms) < 100; first++ {
			m, err := addressed(fmt.Sprint(prefix, first%receivers), first).Message()
			if err != nil {
				tb.Fatal(err)
			}
			ms = append(ms, m)
		}
		if err := tr.Publish(context.Background(), ms...); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestReceiverThatNeverAnswers holds up nobody, and has one connection.
func TestReceiverThatNeverAnswers(t *testing.T) {
	const n = 1000
	var arrived sync.WaitGroup
	arrived.Add(n)
	b := newReceiver(t, arrived.Done)
	a, open := newHole(t)
	tr := deliver(t, map[string]pipeline.Sink{"a0": hook(t, a), "b0": hook(t, b.URL)})
	publish(t, tr, "a", 1, 0, 10)
	publish(t, tr, "b", 1, 0, n)
	arrived.Wait()
	if got := open.Load(); got != 1 {
		t.Errorf("the one that never answers has %d open connections, want 1", got)
	}
}

// BenchmarkThousandReceivers takes notifications from the log to 1,000 webhooks, and posts
// the same bodies with a bare client: ratio is the rate of the one to that of the other.
func BenchmarkThousandReceivers(b *testing.B) {
	const receivers, atOnce = 1000, 128
	var arrived sync.WaitGroup
	r := newReceiver(b, func() { arrived.Done() })
	to := make(map[string]pipeline.Sink)
	for i := range receivers {
		to[fmt.Sprint("r", i)] = hook(b, fmt.Sprint(r.URL, "/", i))
	}
	tr := deliver(b, to)
	arrived.Add(receivers)
	publish(b, tr, "r", receivers, 0, receivers) // connects
	arrived.Wait()

	arrived.Add(b.N)
	b.ResetTimer()
	publish(b, tr, "r", receivers, receivers, receivers+b.N)
	arrived.Wait()
	b.StopTimer()
	ours := float64(b.N) / b.Elapsed().Seconds()

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	defer client.CloseIdleConnections()
	arrived.Add(b.N)
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
		r := newReceiver(b, func() { arrived.Done() })
		hole, _ := newHole(b)
		to := make(map[string]pipeline.Sink)
		for i := range healthy {
			to[fmt.Sprint("r", i)] = hook(b, fmt.Sprint(r.URL, "/", i))
		}
		for i := range dead {
			to[fmt.Sprint("dead", i)] = hook(b, hole)
		}
		tr := deliver(b, to)
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
		r := newReceiver(b, func() { arrived.Done() })
		tr := deliver(b, map[string]pipeline.Sink{"r0": wrap(hook(b, r.URL))})
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
