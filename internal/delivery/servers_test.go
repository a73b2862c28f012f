package delivery_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// newWebhook returns a webhook to a receiver of tests.
func newWebhook(t testing.TB, rawURL any) pipeline.Sink {
	t.Helper()
	c := webhook.Config{URL: registry.NewSecret(fmt.Sprint(rawURL))}
	c.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// newWebhooks returns n webhooks, to the paths /0, /1 and so on of a server, which share their connections
// as those of a configuration do. They are named prefix0, prefix1 and so on.
func newWebhooks(tb testing.TB, server, prefix string, n int) map[string]pipeline.Sink {
	tb.Helper()
	var kinds registry.Registry
	webhook.Register(&kinds)
	build, _ := kinds.Sinks.Lookup("webhook")
	env := registry.Env{AllowSinks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	all := make(map[string]pipeline.Sink, n)
	for i := range n {
		s, err := build(func(to any) error {
			to.(*webhook.Config).URL = registry.NewSecret(fmt.Sprint(server, "/", i))
			return nil
		}, env)
		if err != nil {
			tb.Fatal(err)
		}
		all[fmt.Sprint(prefix, i)] = s
	}
	return all
}

// countingServer takes posts and counts them.
type countingServer struct {
	*httptest.Server
	got atomic.Int64
	// each is called for each post.
	each func()
}

func newCountingServer(tb testing.TB, each func()) *countingServer {
	r := &countingServer{each: each}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if _, err := io.Copy(io.Discard, req.Body); err == nil {
			r.got.Add(1)
			r.each()
		}
	}))
	tb.Cleanup(r.Close)
	return r
}

// newUnresponsiveServer accepts connections and never answers. It counts those that are open.
func newUnresponsiveServer(tb testing.TB) (url string, open *atomic.Int64) {
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

// startDelivery runs a Delivery over the embedded transport in a directory, and returns what
// publishes to it.
func startDelivery(tb testing.TB, to map[string]pipeline.Sink) *local.Transport {
	return startDeliveryOver(tb, to, local.Config{Dir: tb.TempDir()})
}

func startDeliveryOver(tb testing.TB, to map[string]pipeline.Sink, cfg local.Config) *local.Transport {
	cfg.Topics = map[string]local.Topic{
		flow.TopicNotifications: {Groups: []string{flow.GroupDelivery}},
		flow.TopicDead:          {Feedback: true},
		flow.TopicHealth:        {Feedback: true},
	}
	tr, err := local.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if err := tr.Start(context.Background(), flow.Wiring{Bare: true}); err != nil {
		tb.Fatal(err)
	}
	d := delivery.NewDelivery(delivery.Config{Sinks: to, Poster: tr.Poster(flow.GroupDelivery, flow.TopicNotifications)})
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
	b := newCountingServer(t, arrived.Done)
	a, open := newUnresponsiveServer(t)
	tr := startDelivery(t, map[string]pipeline.Sink{"a0": newWebhook(t, a), "b0": newWebhook(t, b.URL)})
	publish(t, tr, "a", 1, 0, 10)
	publish(t, tr, "b", 1, 0, n)
	arrived.Wait()
	if got := open.Load(); got != 1 {
		t.Errorf("the one that never answers has %d open connections, want 1", got)
	}
}

var sockets = flag.Int("sinks.sockets", 200, "receivers of TestManySockets that answer, and as many that do not")

// TestManySockets has many receivers that accept connections and never answer,
// which come first, and as many that answer. These get all of theirs, while each of the
// others has one connection at most. How long they waited is logged.
func TestManySockets(t *testing.T) {
	const rounds = 3
	each := *sockets
	var mu sync.Mutex
	published := make(map[string]time.Time)
	var waited []time.Duration
	var arrived sync.WaitGroup
	arrived.Add(each * rounds)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		mu.Lock()
		defer mu.Unlock()
		waited = append(waited, time.Since(published[strings.TrimPrefix(req.URL.Path, "/")]))
		arrived.Done()
	}))
	t.Cleanup(server.Close)
	hole, open := newUnresponsiveServer(t)
	to := make(map[string]pipeline.Sink)
	for i := range each {
		to[fmt.Sprint("dead", i)] = newWebhook(t, fmt.Sprint(hole, "/", i))
		to[fmt.Sprint("alive", i)] = newWebhook(t, fmt.Sprint(server.URL, "/", i))
	}
	tr := startDelivery(t, to)
	publish(t, tr, "dead", each, 0, each)
	for open.Load() < int64(each)/2 { // they come first
		runtime.Gosched()
	}
	for round := range rounds {
		for i := range each {
			mu.Lock()
			published[fmt.Sprint(i)] = time.Now()
			mu.Unlock()
			publish(t, tr, "alive", each, round*each+i, round*each+i+1)
		}
	}
	arrived.Wait()
	if got := open.Load(); got > int64(each) {
		t.Errorf("%d connections to those that never answer, want at most %d", got, each)
	}
	slices.Sort(waited)
	n := len(waited)
	t.Logf("%d deliveries: median %v, p99 %v, longest %v", n, waited[n/2], waited[n*99/100], waited[n-1])
}
