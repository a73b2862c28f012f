package kafka_test

import (
	"github.com/vokter/vokter/pipeline"

	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/kafka"
)

// benchParallel is how many requests are under way at once.
const benchParallel = 8

// BenchmarkUnchanged checks pages that do not change, by 304 and by an equal body, over
// loopback: a bare client that fetches them, the Router over its embedded transport, and over
// Kafka. Its transactions per 1,000 checks are those that ride along every few seconds in each
// lane, however many checks there are.
func BenchmarkUnchanged(b *testing.B) {
	bs := benchBrokers(b)
	for _, conditional := range []bool{true, false} {
		name := map[bool]string{true: "304", false: "200"}[conditional]
		var bare float64
		b.Run(name+"/bare", func(b *testing.B) { bare = benchFetch(b, conditional) })
		b.Run(name+"/local", func(b *testing.B) { benchChecks(b, nil, conditional, bare) })
		b.Run(name+"/kafka", func(b *testing.B) { benchChecks(b, bs, conditional, bare) })
	}
}

// still serves pages that do not change.
func still(conditional bool, requests *counter) *httptest.Server {
	body := benchText(0, 0)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.add()
		if conditional {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(body)
	}))
}

func benchFetch(b *testing.B, conditional bool) float64 {
	site := still(conditional, newCounter())
	defer site.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchParallel, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for range benchParallel {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				req, _ := http.NewRequest(http.MethodGet, site.URL, nil)
				if conditional {
					req.Header.Set("If-None-Match", `"1"`)
				}
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	return rate(b, b.N, "checks", 0)
}

// benchChecks has pages checked again and again; without brokers by the embedded transport.
func benchChecks(b *testing.B, bs []string, conditional bool, base float64) {
	requests := newCounter()
	site := still(conditional, requests)
	b.Cleanup(site.Close)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	cfg := vokter.Config{
		Dir:   b.TempDir(),
		Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Fetch: vokter.FetchConfig{Concurrency: benchParallel, Rate: 1e9, Allow: loopback},
		Every: new(time.Duration),
	}
	for i := range benchPages {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
			URL: fmt.Sprintf("%s/%d", site.URL, i), Keywords: []string{"nothing of this"}, Sinks: []string{"none"},
		})
	}
	var transports []*kafka.Transport
	if bs != nil {
		tr, err := kafka.New(kafka.Config{Brokers: bs, Prefix: benchPrefix(b, bs), Lanes: testLanes, Replication: 1})
		if err != nil {
			b.Fatal(err)
		}
		cfg.Transport, transports = tr, append(transports, tr)
	}
	start(b, cfg)
	requests.reach(4 * benchPages) // the first version of each is stored
	before, from := commits(transports), requests.n.Load()
	b.ResetTimer()
	requests.reach(from + int64(b.N))
	b.StopTimer()
	rate(b, b.N, "checks", base)
	if bs != nil {
		b.ReportMetric(1000*float64(commits(transports)-before)/float64(b.N), "transactions/1000-checks")
	}
}
