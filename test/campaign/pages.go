//go:build unix

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// pageServer serves pages that change, fail and recover, and records the versions that it delivered.
type pageServer struct {
	server   *http.Server
	addr     string
	counters *counters

	mu            sync.Mutex
	rng           *rand.Rand
	stopped       bool // no page changes or fails any more
	asksForPauses bool // some failures ask for a pause
	pages         []*page
}

// page is one page: its present version and what became of the earlier ones.
type page struct {
	version  int
	lastLook time.Time // when somebody looked at it last
	// delivered holds the versions that a completed 200 delivered; accepted those that the
	// watcher proved to hold, by sending their validator with a later request.
	delivered, accepted map[int]bool
	// lastBaseline is when a version was last delivered to somebody who sent no validator: to one who
	// begins to watch the page, or lost what was stored of it.
	lastBaseline time.Time
	// createdAt is when each version was first served.
	createdAt map[int]time.Time
	// failure is how the page fails now, for failuresLeft more answers. It fails again only
	// once a version that came after the last failure was accepted: so the watcher never
	// counts more failures in a row than maxFailures.
	failure           failureMode
	failuresLeft      int
	lastFailedVersion int // the version during the last failure
	// failsForever says that the page fails until it is resumed.
	failsForever bool
	expiries     []expiry
}

// expiry is a failure of a page that lasts until index gives the page up.
type expiry struct {
	version  int       // the last one before it
	lastLook time.Time // when somebody looked at the page last
	resumed  bool
}

// failureMode is how a page fails.
type failureMode int

const (
	healthy          failureMode = iota
	serverError                  // with 500
	closesConnection             // the connection is closed without an answer
	hangs                        // for a while, and then breaks
	busy                         // with 503 and Retry-After
	failureModeCount
)

// maxFailures is how many answers in a row fail at most. With the limit of 10 that leaves
// room for checks that fail for other reasons.
const maxFailures = 6

func newPageServer(n int, seed uint64, did *counters) (*pageServer, error) {
	p := &pageServer{rng: rand.New(rand.NewPCG(seed, 1)), counters: did, asksForPauses: true}
	for range n {
		p.pages = append(p.pages, &page{
			version: 1, delivered: map[int]bool{}, accepted: map[int]bool{}, createdAt: map[int]time.Time{1: time.Now()},
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page/{n}", p.serve)
	var err error
	p.server, p.addr, err = startServer(mux)
	return p, err
}

func (p *pageServer) close() { p.server.Close() }

func (p *pageServer) url(n int) string { return fmt.Sprintf("http://%s/page/%d", p.addr, n) }

// pageHTML is the page at a version. Its marked paragraph has no word in common with that
// of any other version but the keyword, so each step is one removal and one addition
// which name both versions.
func pageHTML(n, version int) string {
	return fmt.Sprintf("<!doctype html><title>Page %d</title><h1>Page %d</h1><p>This part of page %d never changes.</p>"+
		"<p>marker v%dx one%d two%d three%d</p><p>The end.</p>", n, n, n, version, version, version, version)
}

// pageText is what is read of that: its title, and its blocks.
func pageText(n, version int) string {
	return fmt.Sprintf("Page %d\nPage %d\nThis part of page %d never changes.\nmarker v%dx one%d two%d three%d\nThe end.\n", n, n, n, version, version, version, version)
}

func (p *pageServer) serve(w http.ResponseWriter, r *http.Request) {
	var n int
	if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n < 0 || n >= len(p.pages) {
		http.NotFound(w, r)
		return
	}
	version, known, fails := p.recordRequest(n, r.Header.Get("If-None-Match"))
	if fails != healthy {
		sendFailure(w, r, fails)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
	if known == version {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write([]byte(pageHTML(n, version))); err != nil {
		return
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[n].delivered[version] = true
	if known == 0 {
		p.pages[n].lastBaseline = time.Now()
	}
}

// recordRequest records a request for page n by somebody who has the version that its validator names,
// and returns the present version, the known one, and how the answer fails.
func (p *pageServer) recordRequest(n int, validator string) (version, known int, fails failureMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	pg.lastLook = time.Now()
	if _, err := fmt.Sscanf(validator, `"v%d"`, &known); err == nil {
		pg.accepted[known] = true
	}
	switch {
	case pg.failsForever:
		pg.expiries[len(pg.expiries)-1].lastLook = time.Now()
		return pg.version, known, []failureMode{serverError, closesConnection}[p.rng.IntN(2)]
	case pg.failure != healthy:
		fails = pg.failure
		if pg.failuresLeft--; pg.failuresLeft <= 0 {
			pg.failure = healthy
		}
		return pg.version, known, fails
	case p.stopped || known != pg.version:
	case pg.version > pg.lastFailedVersion && p.rng.IntN(8) == 0:
		p.counters.add("outages")
		all := failureModeCount
		if !p.asksForPauses {
			all = busy
		}
		pg.failure, pg.failuresLeft, pg.lastFailedVersion = 1+failureMode(p.rng.IntN(int(all)-1)), 1+p.rng.IntN(maxFailures), pg.version
	case p.rng.IntN(3) == 0:
		// A page changes only once its version is known to be accepted. So each version must be
		// notified, whatever happens.
		p.advance(pg)
	}
	return pg.version, known, healthy
}

func (p *pageServer) advance(pg *page) {
	pg.version++
	pg.createdAt[pg.version] = time.Now()
}

// sendFailure answers with a failure.
func sendFailure(w http.ResponseWriter, r *http.Request, how failureMode) {
	switch how {
	case serverError:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case busy:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case hangs:
		select {
		case <-time.After(hangDuration):
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// hangDuration is how long a page hangs.
const hangDuration = 700 * time.Millisecond

// failForever makes page n fail from now on, if its present version was accepted. It reports whether
// it did.
func (p *pageServer) failForever(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	if pg.failsForever || p.stopped || pg.failure != healthy || !pg.accepted[pg.version] || pg.version == pg.lastFailedVersion {
		return false
	}
	pg.failsForever = true
	pg.expiries = append(pg.expiries, expiry{version: pg.version})
	return true
}

// endFailForever makes a page that fails for ever answer again.
func (p *pageServer) endFailForever(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	pg.failsForever, pg.lastFailedVersion = false, pg.version
	pg.expiries[len(pg.expiries)-1].resumed = true
}

// lastLooks returns when each page was requested last.
func (p *pageServer) lastLooks() (at []time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pg := range p.pages {
		at = append(at, pg.lastLook)
	}
	return at
}

// hasBaselineSince reports whether page n was delivered since then to somebody who had no version of it.
func (p *pageServer) hasBaselineSince(n int, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages[n].lastBaseline.After(since)
}

// currentVersion returns the version that page n has.
func (p *pageServer) currentVersion(n int) (version int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages[n].version
}

// lastAccepted returns the last version of page n that is known to have been taken.
func (p *pageServer) lastAccepted(n int) (last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range p.pages[n].accepted {
		last = max(last, v)
	}
	return last
}

// endFailures ends all failures but those that last until the page expires, and all changes.
func (p *pageServer) endFailures() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, pg := range p.pages {
		pg.failure = healthy
	}
}

// changeAll changes every page once more that still answers and whose version was taken.
func (p *pageServer) changeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pg := range p.pages {
		if !pg.failsForever && pg.accepted[pg.version] {
			p.advance(pg)
		}
	}
}

// pageHistory is what is known of one page in the end.
type pageHistory struct {
	last                int
	delivered, accepted map[int]bool
	createdAt           map[int]time.Time
	expiries            []expiry
}

func (p *pageServer) histories() []pageHistory {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hs []pageHistory
	for _, pg := range p.pages {
		hs = append(hs, pageHistory{
			last: pg.version, delivered: maps.Clone(pg.delivered), accepted: maps.Clone(pg.accepted),
			createdAt: maps.Clone(pg.createdAt), expiries: slices.Clone(pg.expiries),
		})
	}
	return hs
}
