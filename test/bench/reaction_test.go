package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// BenchmarkReaction measures how long it takes from the last byte of a changed page until the POST of
// its webhook arrives, on disk, while the Router checks 20 and 500 pages a second that do not change
// otherwise. One op is one changed page of 8 KB: 5 or 10 change each second, and there are 16 webhooks.
//
// The metrics are the median and the 99th percentile, of all and of each step, in milliseconds: read
// ends when index begins, so it has the reading of the page and the wait until its text is on the
// disk; index, diff and match end when the next stage begins; and deliver ends when the POST arrives,
// so it has the wait until the attempt is on the disk. Bare is what no implementation can do without, ten
// times a second beside the Router: the page is requested, written and synced to the disk twice, and
// posted.
func BenchmarkReaction(b *testing.B) {
	b.Run("checks=20", func(b *testing.B) { reaction(b, 20, 4) })
	b.Run("checks=500", func(b *testing.B) { reaction(b, 500, 50) })
}

// steps are the stages of a change, by the group that handles it. The last is the receiver.
var steps = []string{flow.GroupIndex, flow.GroupDiff, flow.GroupMatch, flow.GroupDelivery, "receiver"}

// stopwatch notes when changes reach the steps.
type stopwatch struct {
	mu     sync.Mutex
	served map[string]time.Time            // the last changed body of a page, by its URL
	at     map[string]map[string]time.Time // the last message about a page, by step
	took   map[string][]time.Duration
	left   int
	done   chan struct{}
}

// see notes that step begins with a page.
func (w *stopwatch) see(step, page string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at[page] == nil {
		w.at[page] = make(map[string]time.Time)
	}
	w.at[page][step] = time.Now()
}

// arrived takes the times of a page whose notification arrived.
func (w *stopwatch) arrived(page string) {
	w.see("receiver", page)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return
	}
	before, ok := w.served[page]
	if !ok {
		return
	}
	delete(w.served, page)
	w.took["all"] = append(w.took["all"], w.at[page]["receiver"].Sub(before))
	for _, step := range steps {
		w.took[step] = append(w.took[step], w.at[page][step].Sub(before))
		before = w.at[page][step]
	}
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// bare requests a page, writes it to the disk twice and posts it, until the measurement ends.
func (w *stopwatch) bare(b *testing.B, from, to string) {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Error(err)
		return
	}
	defer f.Close()
	tick := time.NewTicker(time.Second / 10)
	defer tick.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
		}
		began := time.Now()
		resp, err := http.Get(from)
		if err != nil {
			b.Error(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		for range 2 {
			_, failed := f.Write(body)
			err = errors.Join(err, failed, f.Sync())
		}
		resp, failed := http.Post(to, "application/json", strings.NewReader("{}"))
		if err = errors.Join(err, failed); err != nil {
			b.Error(err)
			return
		}
		resp.Body.Close()
		w.mu.Lock()
		w.took["bare"] = append(w.took["bare"], time.Since(began))
		w.mu.Unlock()
	}
}

// watch is middleware that notes when a stage begins with the message of a page.
func (w *stopwatch) watch(step string) flow.Middleware {
	return func(p flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type == flow.TypeOutcome || step != flow.GroupIndex {
				w.see(step, m.Subject)
			}
			return p.Process(ctx, tx, m)
		})
	}
}

// changingPages serves pages each of which changes with one of so many requests.
type changingPages struct {
	every    int
	words    []string
	watch    *stopwatch
	mu       sync.Mutex
	requests map[string]int // of each page, from a number on that spreads the changes
	all      int
}

func (c *changingPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.Path
	c.mu.Lock()
	if c.requests[url] == 0 {
		c.requests[url] = 1 + len(c.requests)%c.every
	}
	c.all++
	warm := c.all > 5*len(c.requests) // or it is still the start
	version := c.requests[url] / c.every
	c.requests[url]++
	c.mu.Unlock()
	tag := fmt.Sprintf("%q", fmt.Sprint(version))
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	words := slices.Clone(c.words)
	words[len(words)/2] = fmt.Sprint("version", version)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(page(words))
	http.NewResponseController(w).Flush()
	if warm {
		c.watch.mu.Lock()
		defer c.watch.mu.Unlock()
		c.watch.served[url] = time.Now()
	}
}

// reaction checks a number of pages each second, each of which changes with one of so many checks.
func reaction(b *testing.B, pages, every int) {
	w := &stopwatch{
		served: make(map[string]time.Time), at: make(map[string]map[string]time.Time), took: make(map[string][]time.Duration),
		left: b.N, done: make(chan struct{}),
	}
	site := httptest.NewServer(&changingPages{every: every, words: article(1)[:300], watch: w, requests: make(map[string]int)})
	defer site.Close()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n pipeline.Notification
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			b.Error(err)
		}
		w.arrived(n.URL)
	}))
	defer receiver.Close()
	cfg := vokter.Config{
		Dir:   b.TempDir(),
		Sinks: make(map[string]pipeline.Sink),
		// The rate spreads the checks over the second.
		Fetch:      vokter.FetchConfig{Concurrency: 16, Rate: 1.2 * float64(pages), MinInterval: time.Second, Allow: loopback},
		Middleware: make(map[string][]flow.Middleware),
	}
	for _, step := range steps[:4] {
		cfg.Middleware[step] = []flow.Middleware{w.watch(step)}
	}
	for i := range 16 {
		hook := webhook.Config{URL: registry.NewSecret(receiver.URL)}
		hook.Allow = []netip.Prefix{loopback[0]}
		var err error
		if cfg.Sinks[fmt.Sprint("hook", i)], err = webhook.New(hook); err != nil {
			b.Fatal(err)
		}
	}
	for i := range pages {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
			URL: fmt.Sprintf("%s/%d", site.URL, i), Sinks: []string{fmt.Sprint("hook", i%16)}, Interval: pipeline.Interval{Every: pipeline.Duration(time.Second)},
		})
	}
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	b.ResetTimer()
	go func() { ran <- r.Run(ctx) }()
	var bare sync.WaitGroup
	bare.Go(func() { w.bare(b, site.URL+"/bare", receiver.URL) })
	defer bare.Wait()
	select {
	case <-w.done:
	case err := <-ran:
		b.Fatal("the Router ended: ", err)
	}
	b.StopTimer()
	stop()
	if err := <-ran; err != nil {
		b.Error(err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(r.Summary().Checks)/b.Elapsed().Seconds(), "checks/s")
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, step := range append([]string{"bare", "all"}, steps...) {
		name := []string{"bare", "all", "read", "index", "diff", "match", "deliver"}[i]
		all := w.took[step]
		slices.Sort(all)
		ms := func(n int) float64 { return float64(all[n].Microseconds()) / 1000 }
		b.ReportMetric(ms(len(all)/2), name+"-p50-ms")
		b.ReportMetric(ms(len(all)*99/100), name+"-p99-ms")
	}
}
