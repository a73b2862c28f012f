package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
)

// pages serves pages that change, and records what it really handed over.
type pages struct {
	server *http.Server
	addr   string

	mu     sync.Mutex
	dice   *rand.Rand
	frozen bool
	pages  []*page
}

// page is one page: its present version and what became of the earlier ones.
type page struct {
	version int
	// delivered holds the versions that a completed 200 delivered; accepted those that the
	// watcher proved to hold, by sending their validator with a later request.
	delivered, accepted map[int]bool
}

func newPages(n int, seed uint64) (*pages, error) {
	p := &pages{dice: rand.New(rand.NewPCG(seed, 1))}
	for range n {
		p.pages = append(p.pages, &page{version: 1, delivered: map[int]bool{}, accepted: map[int]bool{}})
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
	p.mu.Lock()
	pg := p.pages[n]
	var known int
	if _, err := fmt.Sscanf(r.Header.Get("If-None-Match"), `"v%d"`, &known); err == nil {
		pg.accepted[known] = true
		// A page moves on only once its version is known to have been taken: then each
		// version must be told, whatever happens.
		if known == pg.version && !p.frozen && p.dice.IntN(3) == 0 {
			pg.version++
		}
	}
	version := pg.version
	p.mu.Unlock()

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
	pg.delivered[version] = true
}

// freeze stops all change.
func (p *pages) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// history is what is known of one page in the end.
type history struct {
	last                int
	delivered, accepted map[int]bool
}

func (p *pages) record() []history {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hs []history
	for _, pg := range p.pages {
		h := history{last: pg.version, delivered: map[int]bool{}, accepted: map[int]bool{}}
		for v := range pg.delivered {
			h.delivered[v] = true
		}
		for v := range pg.accepted {
			h.accepted[v] = true
		}
		hs = append(hs, h)
	}
	return hs
}
