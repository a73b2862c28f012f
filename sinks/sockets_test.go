package sinks_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TestTwoThousandSockets has 1,000 receivers that accept connections and never answer,
// which come first, and 1,000 that answer. These get all of theirs, while each of the
// others has one connection at most. How long they waited is logged.
func TestTwoThousandSockets(t *testing.T) {
	const each, rounds = 1000, 3
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
	hole, open := newHole(t)
	to := make(map[string]pipeline.Sink)
	for i := range each {
		to[fmt.Sprint("dead", i)] = hook(t, fmt.Sprint(hole, "/", i))
		to[fmt.Sprint("alive", i)] = hook(t, fmt.Sprint(server.URL, "/", i))
	}
	tr := deliver(t, to)
	publish(t, tr, "dead", each, 0, each)
	for open.Load() < each/2 { // they come first
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
	if got := open.Load(); got > each {
		t.Errorf("%d connections to those that never answer, want at most %d", got, each)
	}
	slices.Sort(waited)
	n := len(waited)
	t.Logf("%d deliveries: median %v, p99 %v, longest %v", n, waited[n/2], waited[n*99/100], waited[n-1])
}
