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

// pages serves pages that change, fail and recover, and records the versions that it delivered.
type pages struct {
	server *http.Server
	addr   string
	did    *tally

	mu     sync.Mutex
	dice   *rand.Rand
	frozen bool // no page changes or fails any more
	urbane bool // some failures ask for a pause
	pages  []*page
}

// page is one page: its present version and what became of the earlier ones.
type page struct {
	version int
	looked  time.Time // when somebody looked at it last
	// delivered holds the versions that a completed 200 delivered; accepted those that the
	// watcher proved to hold, by sending their validator with a later request.
	delivered, accepted map[int]bool
	// born is when each version was first there to be seen.
	born map[int]time.Time
	// trouble is how the page fails now, until so many answers failed. It fails again only
	// once a version that came after the last trouble was accepted: then the watcher has
	// counted no more failures in a row than one trouble has.
	trouble trouble
	left    int
	spared  int // the version during the last trouble
	// doomed pages fail for ever from a version on, until they are resumed.
	doomed bool
	dooms  []doom
}

// doom is a failure of a page that lasts until the page expires.
type doom struct {
	version int       // the last one before it
	looked  time.Time // when somebody looked at the page last
	resumed bool
}

// trouble is how a page fails.
type trouble int

const (
	well     trouble = iota
	answers5         // with 500
	breaks           // the connection is closed without an answer
	hangs            // for a while, and then breaks
	busy             // with 503 and Retry-After
	troubles
)

// mostFailures is how many answers of one trouble fail. With the limit of 10 that leaves
// room for checks that fail for other reasons.
const mostFailures = 6

func newPages(n int, seed uint64, did *tally) (*pages, error) {
	p := &pages{dice: rand.New(rand.NewPCG(seed, 1)), did: did, urbane: true}
	for range n {
		p.pages = append(p.pages, &page{
			version: 1, delivered: map[int]bool{}, accepted: map[int]bool{}, born: map[int]time.Time{1: time.Now()},
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page/{n}", p.serve)
	var err error
	p.server, p.addr, err = serve(mux)
	return p, err
}

func (p *pages) close() { p.server.Close() }

func (p *pages) url(n int) string { return fmt.Sprintf("http://%s/page/%d", p.addr, n) }

// text is the page at a version. Its marked paragraph has no word in common with that
// of any other version but the keyword, so each step is one removal and one addition
// which name both versions.
func text(n, version int) string {
	return fmt.Sprintf("<!doctype html><title>Page %d</title><h1>Page %d</h1><p>This part of page %d never changes.</p>"+
		"<p>marker v%dx one%d two%d three%d</p><p>The end.</p>", n, n, n, version, version, version, version)
}

func (p *pages) serve(w http.ResponseWriter, r *http.Request) {
	var n int
	if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n < 0 || n >= len(p.pages) {
		http.NotFound(w, r)
		return
	}
	version, known, fails := p.look(n, r.Header.Get("If-None-Match"))
	if fails != well {
		fail(w, r, fails)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
	if known == version {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write([]byte(text(n, version))); err != nil {
		return
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[n].delivered[version] = true
}

// look notes that somebody looks at page n who holds the version that its validator names,
// and says which version there is and whether the answer fails.
func (p *pages) look(n int, validator string) (version, known int, fails trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	pg.looked = time.Now()
	if _, err := fmt.Sscanf(validator, `"v%d"`, &known); err == nil {
		pg.accepted[known] = true
	}
	switch {
	case pg.doomed:
		pg.dooms[len(pg.dooms)-1].looked = time.Now()
		return pg.version, known, []trouble{answers5, breaks}[p.dice.IntN(2)]
	case pg.trouble != well:
		fails = pg.trouble
		if pg.left--; pg.left <= 0 {
			pg.trouble = well
		}
		return pg.version, known, fails
	case p.frozen || known != pg.version:
	case pg.version > pg.spared && p.dice.IntN(8) == 0:
		p.did.add("outages")
		all := troubles
		if !p.urbane {
			all = busy
		}
		pg.trouble, pg.left, pg.spared = 1+trouble(p.dice.IntN(int(all)-1)), 1+p.dice.IntN(mostFailures), pg.version
	case p.dice.IntN(3) == 0:
		// A page changes only once its version is known to be accepted. So each version must be
		// notified, whatever happens.
		p.move(pg)
	}
	return pg.version, known, well
}

func (p *pages) move(pg *page) {
	pg.version++
	pg.born[pg.version] = time.Now()
}

// fail answers with a failure.
func fail(w http.ResponseWriter, r *http.Request, how trouble) {
	switch how {
	case answers5:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case busy:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case hangs:
		select {
		case <-time.After(hangFor):
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// hangFor is how long a page hangs.
const hangFor = 700 * time.Millisecond

// doom makes page n fail from now on, once it has been seen to change. It reports whether
// it does.
func (p *pages) doom(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	if pg.doomed || p.frozen || pg.trouble != well || !pg.accepted[pg.version] || pg.version == pg.spared {
		return false
	}
	pg.doomed = true
	pg.dooms = append(pg.dooms, doom{version: pg.version})
	return true
}

// save makes a doomed page answer again.
func (p *pages) save(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pg := p.pages[n]
	pg.doomed, pg.spared = false, pg.version
	pg.dooms[len(pg.dooms)-1].resumed = true
}

// looks returns when somebody looked at each page last.
func (p *pages) looks() (at []time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pg := range p.pages {
		at = append(at, pg.looked)
	}
	return at
}

// now returns the version that page n has.
func (p *pages) now(n int) (version int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pages[n].version
}

// taken returns the last version of page n that is known to have been taken.
func (p *pages) taken(n int) (last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range p.pages[n].accepted {
		last = max(last, v)
	}
	return last
}

// heal ends all troubles but dooms, and all change.
func (p *pages) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
	for _, pg := range p.pages {
		pg.trouble = well
	}
}

// last changes every page once more that still answers and whose version was taken.
func (p *pages) last() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pg := range p.pages {
		if !pg.doomed && pg.accepted[pg.version] {
			p.move(pg)
		}
	}
}

// history is what is known of one page in the end.
type history struct {
	last                int
	delivered, accepted map[int]bool
	born                map[int]time.Time
	dooms               []doom
}

func (p *pages) record() []history {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hs []history
	for _, pg := range p.pages {
		hs = append(hs, history{
			last: pg.version, delivered: maps.Clone(pg.delivered), accepted: maps.Clone(pg.accepted),
			born: maps.Clone(pg.born), dooms: slices.Clone(pg.dooms),
		})
	}
	return hs
}
