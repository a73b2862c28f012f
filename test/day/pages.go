package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pageServer serves the pages and notes when each one is asked for and which versions are taken.
type pageServer struct {
	options options
	clock   *clock
	servers []*http.Server
	addrs   []string

	mu           sync.Mutex
	rng          *rand.Rand
	began        time.Time // zero during the first reads
	troubleOver  bool      // no page changes, and no host hangs but those that hang for ever
	pages        []page
	unread       int // pages, except those of dead hosts, that were not read yet
	hung         int // requests that got no answer
	failedUnread int // checks that failed before their request was read here
	longest      time.Duration
	overdue      []string // the first checks that were overdue
}

// page is what is known of one page.
type page struct {
	version   int // the one that is served
	accepted  int // the last one that a conditional request named
	lastAsked time.Time
	overdue   bool
}

func newPageServer(o options, c *clock) (*pageServer, error) {
	w := &pageServer{options: o, clock: c, rng: rand.New(rand.NewPCG(o.seed, 1)), pages: make([]page, o.pages)}
	for n := range w.pages {
		w.pages[n].version = 1
		if !w.isDead(w.host(n)) {
			w.unread++
		}
	}
	for h := range o.hosts {
		s, addr, err := startServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(h, rw, r) }))
		if err != nil {
			w.close()
			return nil, err
		}
		w.servers, w.addrs = append(w.servers, s), append(w.addrs, addr)
	}
	return w, nil
}

// startServer serves h on a loopback port of its own until the server is closed.
func startServer(h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := &http.Server{Handler: h}
	go s.Serve(l) //nolint:errcheck // It ends with Close.
	return s, l.Addr().String(), nil
}

func (w *pageServer) close() {
	for _, s := range w.servers {
		s.Close()
	}
}

func (w *pageServer) host(n int) int   { return n % w.options.hosts }
func (w *pageServer) url(n int) string { return fmt.Sprintf("http://%s/%d", w.addrs[w.host(n)], n) }

// troubleRatio says that one in so many hosts hangs for ever, and one in so many in each hour.
const troubleRatio = 50

// isDead reports whether host h never answers.
func (w *pageServer) isDead(h int) bool { return h%troubleRatio == troubleRatio/2 }

// isHanging reports whether host h does not answer now. w.mu is held.
func (w *pageServer) isHanging(h int, now time.Time) bool {
	if w.isDead(h) || w.troubleOver || w.began.IsZero() {
		return w.isDead(h)
	}
	return h%troubleRatio == int(now.Sub(w.began)/time.Hour)%troubleRatio
}

func (w *pageServer) serve(h int, rw http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || n < 0 || n >= w.options.pages || w.host(n) != h {
		http.NotFound(rw, r)
		return
	}
	known := 0
	if v := r.Header.Get("If-None-Match"); v != "" {
		if _, err := fmt.Sscanf(v, `"v%d"`, &known); err != nil {
			http.Error(rw, "bad validator", http.StatusBadRequest)
			return
		}
	}
	version, hangs := w.recordRequest(n, known)
	if hangs {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	rw.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
	if known == version {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Write([]byte(pageHTML(n, version))) //nolint:errcheck // What was not taken is asked for again.
}

// recordRequest records a request for page n by somebody who has the version known, and returns what to answer.
func (w *pageServer) recordRequest(n, known int) (version int, hangs bool) {
	now := w.clock.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.pages[n]
	if p.lastAsked.IsZero() && !w.isDead(w.host(n)) {
		w.unread--
	}
	w.recordGap(n, now)
	p.lastAsked = now
	p.accepted = max(p.accepted, known)
	if w.isHanging(w.host(n), now) {
		w.hung++
		return p.version, true
	}
	// A page changes only after its version was taken, so each version must be told.
	if !w.began.IsZero() && !w.troubleOver && known == p.version && w.rng.Float64() < w.options.change {
		p.version++
	}
	return p.version, false
}

// recordGap records for how long page n was not asked for. It is overdue when its check is late by more
// than one interval. w.mu is held.
func (w *pageServer) recordGap(n int, now time.Time) {
	p := &w.pages[n]
	if w.began.IsZero() || w.isDead(w.host(n)) {
		return
	}
	gap := now.Sub(laterOf(p.lastAsked, w.began))
	w.longest = max(w.longest, gap)
	if gap <= 2*interval {
		return
	}
	p.overdue = true
	if len(w.overdue) < 10 {
		w.overdue = append(w.overdue, fmt.Sprintf("page %d of host %d, not asked for from %v to %v",
			n, w.host(n), p.lastAsked.Sub(w.began).Round(time.Second), now.Sub(w.began).Round(time.Second)))
	}
}

// recordFailedCheck records that the process logged a failed check of a page. On a busy machine such a request can
// reach its timeout before it is read here.
func (w *pageServer) recordFailedCheck(url string) {
	now := w.clock.now()
	n, err := strconv.Atoi(url[strings.LastIndex(url, "/")+1:])
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || n < 0 || n >= len(w.pages) || w.url(n) != url || w.pages[n].lastAsked.IsZero() {
		return
	}
	w.recordGap(n, now)
	if now.Sub(w.pages[n].lastAsked) > interval/2 {
		w.failedUnread++
	}
	w.pages[n].lastAsked = now
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// allRead reports whether every page that can be read was asked for.
func (w *pageServer) allRead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unread == 0
}

// startDay begins the day: pages may change from now on.
func (w *pageServer) startDay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = w.clock.now()
}

// endTrouble ends all changes of pages, and all hanging but that of dead hosts.
func (w *pageServer) endTrouble() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubleOver = true
}

// lastVersionsTaken reports whether the last version of each page was taken.
func (w *pageServer) lastVersionsTaken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, p := range w.pages {
		if p.accepted != p.version && !w.isDead(w.host(n)) {
			return false
		}
	}
	return true
}

// lastVersions returns the last version of each page. All from the second on are to be told.
func (w *pageServer) lastVersions() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := make([]int, len(w.pages))
	for n, p := range w.pages {
		due[n] = p.version
	}
	return due
}

// pagesVerdict is what the page server saw.
type pagesVerdict struct {
	overdue, hung, failedUnread int
	untaken                     int // pages whose last version was never taken
	// longest is the longest time between two requests for a page whose host is not dead.
	longest time.Duration
	first   []string // the first overdue checks
}

func (w *pageServer) verdict() pagesVerdict {
	now := w.clock.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	v := pagesVerdict{hung: w.hung, failedUnread: w.failedUnread}
	for n, p := range w.pages {
		w.recordGap(n, now)
		if w.pages[n].overdue {
			v.overdue++
		}
		if p.accepted != p.version && !w.isDead(w.host(n)) {
			v.untaken++
		}
	}
	v.longest, v.first = w.longest, w.overdue
	return v
}

// pageHTML is page n at a version, 8 KB of HTML. Its marked paragraph has no word in common with that of
// another version except the keyword.
func pageHTML(n, version int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<!doctype html><html lang=en><title>Page %d</title><h1>Page %d</h1>\n", n, n)
	words := rand.New(rand.NewPCG(uint64(n), 2))
	for s.Len() < 8000 {
		s.WriteString("<p>")
		for range 60 {
			s.WriteString(vocabulary[words.IntN(len(vocabulary))])
			s.WriteByte(' ')
		}
		s.WriteString("</p>\n")
	}
	fmt.Fprintf(&s, "<p>marker p%d v%dx one%d two%d</p><p>The end.</p>\n", n, version, version, version)
	return s.String()
}

// vocabulary is what the pages are written with.
var vocabulary = strings.Fields("about above account action address advice against agree answer area article autumn balance board border " +
	"bridge build cabinet capital carry centre certain change chapter charge choice citizen climate coast common company council country " +
	"course cover current decide degree demand design detail direct district doctor economy effect election energy evening example family " +
	"figure finance forest future garden general ground harbour history house import include income island journey justice kitchen language " +
	"law letter library market matter measure member method minister morning mountain nation nature notice number office open order paper " +
	"parliament people period person picture place police policy power present price problem process product public quarter question railway " +
	"reason record region report result river road school science season section service session shore society station street student summer " +
	"system teacher theatre town trade travel union university value village water weather week winter worker")
