package browser

import (
	"context"
	"errors"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
)

// Limit is a bound that ends a page which passes it.
type Limit string

// Limits of a page.
const (
	LimitMemory      Limit = "memory"      // Config.Memory
	LimitRequests    Limit = "requests"    // 500 requests
	LimitConnections Limit = "connections" // 500 connections
	LimitTraffic     Limit = "traffic"     // 100 MiB sent and received
	LimitSize        Limit = "size"        // Config.MaxBody
	LimitTimeout     Limit = "timeout"     // Config.Timeout
	LimitTabs        Limit = "tabs"        // no tab became free within the timeout of the fetch
)

// Limits are all of them.
var Limits = []Limit{LimitMemory, LimitRequests, LimitConnections, LimitTraffic, LimitSize, LimitTimeout, LimitTabs}

// Error makes a Limit the cause of a failed fetch.
func (l Limit) Error() string { return "the limit of " + string(l) }

// Stats are figures of the browsers of a Fetcher.
type Stats struct {
	// Open is how many pages are open, and Waiting how many wait until another one is closed.
	Open, Waiting int
	// Memory is what the browsers of the open pages used when it was last measured, in bytes. It is
	// measured on Linux only, and 0 elsewhere.
	Memory int64
	// Opened is how many browsers were started, and Ended how many pages each Limit ended.
	Opened int
	Ended  map[Limit]int
}

// statsCounter counts Stats.
type statsCounter struct {
	mu sync.Mutex
	Stats
}

// update changes the figures by change.
func (c *statsCounter) update(change func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.Stats)
}

// countLimit counts the Limit that err is about, if it is about one.
func (c *statsCounter) countLimit(err error) {
	limit, ok := errors.AsType[Limit](err)
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		limit, ok = LimitTimeout, true
	}
	if ok {
		c.update(func(s *Stats) { s.Ended[limit]++ })
	}
}

// Stats returns the figures as they are now. Ended has all Limits.
func (f *Fetcher) Stats() Stats {
	f.counts.mu.Lock()
	defer f.counts.mu.Unlock()
	s := f.counts.Stats
	s.Ended = make(map[Limit]int, len(Limits))
	for _, l := range Limits {
		s.Ended[l] = f.counts.Ended[l]
	}
	return s
}

// Gauges returns Stats as the metrics that docs/metrics.md describes.
func (f *Fetcher) Gauges() []flow.Gauge {
	s := f.Stats()
	all := []flow.Gauge{
		{Name: "vokter_browser_open_pages", Help: "Pages that are open in the browser.", Value: float64(s.Open)},
		{Name: "vokter_browser_waiting_pages", Help: "Pages that wait for a tab of the browser.", Value: float64(s.Waiting)},
		{Name: "vokter_browser_memory_bytes", Help: "Memory of the browsers of all open pages, in bytes; 0 except on Linux.", Value: float64(s.Memory)},
		{Name: "vokter_browser_opened_total", Help: "Pages that were opened in the browser.", Value: float64(s.Opened)},
	}
	for _, l := range Limits {
		all = append(all, flow.Gauge{
			Name: "vokter_browser_ended_total", Help: "Pages in the browser that a limit ended.",
			Labels: map[string]string{"limit": string(l)}, Value: float64(s.Ended[l]),
		})
	}
	return all
}
