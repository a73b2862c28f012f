//go:build unix

package kafka

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

const (
	// benchPages is how many pages change in turn. The next version of a page waits for the commit of the one
	// before, so few pages would make small transactions.
	benchPages = 1024
	// benchChecked is how many pages are checked again and again.
	benchChecked = 128
	// benchWarmUp is how many pages the bare handler passes on before it is measured. It is the first
	// benchmark, and a broker that has just been started is two to three times as slow.
	benchWarmUp = 20_000
)

// BenchmarkChanges counts the changes that other programs read, read committed, while
// changed pages of about benchBody bytes are pushed through topic ingest: through the whole
// pipeline with one and with three processes. Beside it a bare handler of watermill-kafka consumes and publishes the
// same pages over as many partitions. The processes are Routers in one program that share nothing: each has
// connections, a consumer and a copy of the state of its own, but they share the processors that one has.
func BenchmarkChanges(b *testing.B) {
	bs := benchBrokers(b)
	var bare float64
	b.Run("watermill-kafka", func(b *testing.B) { bare = benchBare(b, bs) })
	b.Run("pipeline/1", func(b *testing.B) { benchChanges(b, bs, 1, bare) })
	b.Run("pipeline/3", func(b *testing.B) { benchChanges(b, bs, 3, bare) })
}

func benchBare(b *testing.B, bs []string) float64 {
	prefix := benchPrefix(b, bs)
	if err := openBench(b, bs, prefix, "").Close(); err != nil {
		b.Fatal(err)
	}
	out := countRecords(b, bs, prefix+"out")
	bareHandler(b, bs, prefix, func() {})
	push := newPagePusher(b, bs, prefix+"in")
	push(0, benchWarmUp)
	out.waitFor(benchWarmUp)
	used := cpuTime(b)
	b.ResetTimer()
	push(benchWarmUp, b.N)
	out.waitFor(int64(benchWarmUp + b.N))
	b.StopTimer()
	b.ReportMetric((cpuTime(b)-used).Seconds()*1000/float64(b.N), "cpu-ms/change")
	return reportRate(b, b.N, "changes", 0)
}

func benchChanges(b *testing.B, bs []string, processes int, base float64) {
	prefix := benchPrefix(b, bs)
	var transports []*Transport
	for range processes {
		tr, err := New(Config{Brokers: bs, Prefix: prefix, Lanes: testLanes, Replication: 1})
		if err != nil {
			b.Fatal(err)
		}
		cfg := vokter.Config{Transport: tr, Dir: b.TempDir()}
		for i := range benchPages {
			cfg.Documents = append(cfg.Documents, vokter.Document{URL: benchURL(i), Keep: true, Interval: pipeline.Never})
		}
		startRouter(b, cfg)
		transports = append(transports, tr)
	}
	waitUntilShared(b, transports)
	out := countRecords(b, bs, prefix+flow.TopicChanges)
	push := newPagePusher(b, bs, prefix+flow.TopicIngest)
	push(0, 2*benchPages) // each page has changed once
	out.waitFor(benchPages)
	before, used := countCommits(transports), cpuTime(b)
	b.ResetTimer()
	push(2*benchPages, b.N)
	out.waitFor(int64(benchPages + b.N))
	b.StopTimer()
	reportRate(b, b.N, "changes", base)
	b.ReportMetric((cpuTime(b)-used).Seconds()*1000/float64(b.N), "cpu-ms/change")
	b.ReportMetric(float64(b.N)/float64(max(countCommits(transports)-before, 1)), "changes/transaction")
}

// startRouter runs a Router until the end of b.
func startRouter(b *testing.B, cfg vokter.Config) *vokter.Router {
	b.Helper()
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case <-r.Running():
	case err := <-ended:
		b.Fatalf("Run: %v", err)
	}
	return r
}

// waitUntilShared returns once the transports share all lanes and each has some.
func waitUntilShared(b *testing.B, transports []*Transport) {
	b.Helper()
	for settled := false; !settled; time.Sleep(10 * time.Millisecond) {
		settled = true
		sum := 0
		for _, t := range transports {
			t.mu.Lock()
			owned := len(t.assigned)
			t.mu.Unlock()
			sum += owned
			settled = settled && owned > 0 && owned <= testLanes/2 == (len(transports) > 1) && t.Ready() == nil
		}
		settled = settled && sum == testLanes
	}
}

// cpuTime returns the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func countCommits(transports []*Transport) (n uint64) {
	for _, t := range transports {
		n += t.counters.commits.Load()
	}
	return n
}

func benchURL(page int) string { return fmt.Sprintf("https://bench.example/%d", page) }

// benchText is a page's text in version v: words, of which one in a hundred differs from
// those of the version before. Those of every other version are the same.
func benchText(page, v int) []byte {
	dice := rand.New(rand.NewPCG(uint64(page), 0))
	var s bytes.Buffer
	s.WriteString("<!doctype html><title>A page</title>")
	for i := 0; s.Len() < benchBody; i++ {
		if i%30 == 0 {
			s.WriteString("\n<p>")
		}
		if word := dice.IntN(4000); i%100 == 50 {
			s.WriteString("edited" + benchWord(v%2+i) + " ")
		} else {
			s.WriteString(benchWord(word) + " ")
		}
	}
	return s.Bytes()
}

// benchWord returns word n, which has letters only: a page on which each word is a number is seen by nobody.
func benchWord(n int) string {
	const consonants, vowels = "bdfghklmnprstvwz", "aeiou"
	var b []byte
	for range 3 {
		b = append(b, consonants[n%16], vowels[n/16%5])
		n = n/20 + 7
	}
	return string(b)
}

// newPagePusher returns a function that writes versions of pages to topic as another program does: those from
// first on, n of them, page by page in turn and keyed by their URLs.
func newPagePusher(b *testing.B, bs []string, topic string) (push func(first, n int)) {
	b.Helper()
	c := kafkatest.Config()
	c.Producer.Partitioner = sarama.NewMurmur2Partitioner
	p := newProducer(b, bs, c)
	var bodies [benchPages][2][]byte
	for i := range bodies {
		bodies[i] = [2][]byte{benchText(i, 0), benchText(i, 1)}
	}
	return func(first, n int) {
		for from := first; from < first+n; from += 100 {
			var ms []*sarama.ProducerMessage
			for i := from; i < min(from+100, first+n); i++ {
				url := benchURL(i % benchPages)
				ms = append(ms, &sarama.ProducerMessage{
					Topic: topic, Key: sarama.StringEncoder(url), Value: sarama.ByteEncoder(bodies[i%benchPages][i/benchPages%2]),
					Headers: []sarama.RecordHeader{
						{Key: []byte("content-type"), Value: []byte("text/html")}, {Key: []byte("ce_subject"), Value: []byte(url)},
					},
				})
			}
			if err := p.SendMessages(ms); err != nil {
				b.Fatal(err)
			}
		}
	}
}

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

// serveUnchanged starts a server of pages that do not change.
func serveUnchanged(conditional bool, requests *counter) *httptest.Server {
	body := benchText(0, 0)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.add()
		if conditional {
			w.Header().Set("ETag", `"1"`)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // 304 where the tag is known
	}))
}

func benchFetch(b *testing.B, conditional bool) float64 {
	site := serveUnchanged(conditional, newCounter())
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
	return reportRate(b, b.N, "checks", 0)
}

// benchChecks has pages checked again and again; without brokers by the embedded transport.
func benchChecks(b *testing.B, bs []string, conditional bool, base float64) {
	requests := newCounter()
	site := serveUnchanged(conditional, requests)
	b.Cleanup(site.Close)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	cfg := vokter.Config{
		Dir:   b.TempDir(),
		Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Fetch: vokter.FetchConfig{Concurrency: benchParallel, Rate: 1e9, Allow: loopback},
		Every: new(time.Duration),
	}
	for i := range benchChecked {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
			URL: fmt.Sprintf("%s/%d", site.URL, i), Keywords: []string{"nothing of this"}, Sinks: []string{"none"},
		})
	}
	var transports []*Transport
	if bs != nil {
		tr, err := New(Config{Brokers: bs, Prefix: benchPrefix(b, bs), Lanes: testLanes, Replication: 1})
		if err != nil {
			b.Fatal(err)
		}
		cfg.Transport, transports = tr, append(transports, tr)
	}
	startRouter(b, cfg)
	requests.waitFor(4 * benchChecked) // the first version of each is stored
	before, from := countCommits(transports), requests.n.Load()
	b.ResetTimer()
	requests.waitFor(from + int64(b.N))
	b.StopTimer()
	reportRate(b, b.N, "checks", base)
	if bs != nil {
		b.ReportMetric(1000*float64(countCommits(transports)-before)/float64(b.N), "transactions/1000-checks")
	}
}
