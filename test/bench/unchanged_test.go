//go:build unix

package bench_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

var unchangedPages = flag.String("unchanged.pages", "1000,10000", "numbers of watched pages of BenchmarkUnchanged, separated by commas")

// parallel is how many requests are in flight at once, on both sides of a comparison.
const parallel = 8

// BenchmarkUnchanged checks pages that do not change, by an equal body of 8 KB and by 304, through
// the running Router over loopback, beside a bare client that fetches and hashes. One op is one
// check. The pages have been read and stored before the measurement begins. It begins with the first
// request and ends when the Router has stopped and closed its store.
//
// The metrics are per check and of the whole process, which includes the test server: cpu-us is
// processor time, read-calls and written-B are the read system calls, those of sockets among them,
// and the bytes written to the disk by /proc/self/io. A number of checks below that of the pages is
// raised to it. Let it be large enough that memtables are flushed: -benchtime 30000x.
func BenchmarkUnchanged(b *testing.B) {
	body := page(article(1)[:300])
	s := &site{body: body}
	server := httptest.NewServer(s)
	defer server.Close()
	kinds := []string{"200", "304"}
	for _, kind := range kinds {
		b.Run(kind+"/bare", func(b *testing.B) {
			s.conditional = kind == "304"
			s.measure(b, func() int {
				bare(b, server.URL, s.conditional)
				return b.N
			})
		})
	}
	for _, n := range append([]string{"memory"}, strings.Split(*unchangedPages, ",")...) {
		pages, dir := 16, ""
		if n != "memory" {
			var err error
			if pages, err = strconv.Atoi(n); err != nil || pages < 1 {
				b.Fatalf("-unchanged.pages: %q is not a number of pages", n)
			}
			dir = b.TempDir()
			s.conditional = true
			runOnce(b, watched(server.URL, dir, pages, 1))
		}
		for _, kind := range kinds {
			b.Run(kind+"/"+n, func(b *testing.B) {
				if b.N == 1 {
					return // the testing package's trial
				}
				s.conditional = kind == "304"
				cfg := watched(server.URL, dir, pages, (b.N+pages-1)/pages)
				s.measure(b, func() int { return runOnce(b, cfg).Checks })
			})
		}
	}
}

// watched returns the configuration of a Router that makes a number of checks of each page.
func watched(site, dir string, pages, checks int) vokter.Config {
	cfg := vokter.Config{
		Dir:    dir,
		Sinks:  map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Fetch:  vokter.FetchConfig{Concurrency: parallel, Rate: 1e9, Allow: loopback},
		Checks: checks, Every: &everyTime,
	}
	for i := range pages {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{
			URL: fmt.Sprintf("%s/%d", site, i), Keywords: []string{"nothing of this"}, Sinks: []string{"none"},
		})
	}
	return cfg
}

// site serves one body under every path.
type site struct {
	body        []byte
	conditional bool
	// first is called at the first request of a measurement.
	first *sync.Once
	begin func()
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.first != nil {
		s.first.Do(s.begin)
	}
	if s.conditional {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(s.body)
}

// measure reports what run uses for each of the checks whose number it returns, from its first request on.
func (s *site) measure(b *testing.B, run func() int) {
	var before usage
	s.first, s.begin = new(sync.Once), func() { before = used(b) }
	checks := run()
	after := used(b)
	s.first = nil
	each := func(n float64) float64 { return n / float64(checks) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each(float64(after.at.Sub(before.at).Nanoseconds())), "ns/check")
	b.ReportMetric(each(float64(after.cpu.Microseconds()-before.cpu.Microseconds())), "cpu-us/check")
	b.ReportMetric(each(float64(after.reads-before.reads)), "read-calls/check")
	b.ReportMetric(each(float64(after.written-before.written)), "written-B/check")
}

// usage is what the process has used since its start.
type usage struct {
	at             time.Time
	cpu            time.Duration
	reads, written int64
}

func used(b *testing.B) usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Error(err)
	}
	u := usage{at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	io, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return u // not Linux
	}
	for line := range bytes.Lines(io) {
		fmt.Sscanf(string(line), "syscr: %d", &u.reads)
		fmt.Sscanf(string(line), "write_bytes: %d", &u.written)
	}
	return u
}

// bare fetches and hashes with net/http alone.
func bare(b *testing.B, url string, conditional bool) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: parallel, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				req, _ := http.NewRequest(http.MethodGet, url, nil)
				req.Header.Set("Accept-Encoding", "gzip")
				if conditional {
					req.Header.Set("If-None-Match", `"1"`)
				}
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				h := sha256.New()
				var r io.Reader = resp.Body
				if resp.Header.Get("Content-Encoding") == "gzip" {
					if r, err = gzip.NewReader(r); err != nil {
						b.Error(err)
						return
					}
				}
				io.Copy(h, r)
				h.Sum(nil)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}
