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

// world serves the pages and notes when each one is asked for and which versions are taken.
type world struct {
	o       options
	clock   *clock
	servers []*http.Server
	addrs   []string

	mu      sync.Mutex
	dice    *rand.Rand
	began   time.Time // zero during the first reads
	calm    bool      // no page changes, and no host hangs but those that hang for ever
	pages   []page
	unread  int // pages, except those of dead hosts, that were not read yet
	hung    int // requests that got no answer
	unseen  int // checks that failed before their request was read here
	longest time.Duration
	overdue []string // the first checks that were overdue
}

// page is what is known of one page.
type page struct {
	version  int // the one that is served
	accepted int // the last one that a conditional request named
	asked    time.Time
	overdue  bool
}

func newWorld(o options, c *clock) (*world, error) {
	w := &world{o: o, clock: c, dice: rand.New(rand.NewPCG(o.seed, 1)), pages: make([]page, o.pages)}
	for n := range w.pages {
		w.pages[n].version = 1
		if !w.dead(w.host(n)) {
			w.unread++
		}
	}
	for h := range o.hosts {
		s, addr, err := serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(h, rw, r) }))
		if err != nil {
			w.close()
			return nil, err
		}
		w.servers, w.addrs = append(w.servers, s), append(w.addrs, addr)
	}
	return w, nil
}

// serve serves h on a loopback port of its own until the server is closed.
func serve(h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := &http.Server{Handler: h}
	go s.Serve(l) //nolint:errcheck // It ends with Close.
	return s, l.Addr().String(), nil
}

func (w *world) close() {
	for _, s := range w.servers {
		s.Close()
	}
}

func (w *world) host(n int) int   { return n % w.o.hosts }
func (w *world) url(n int) string { return fmt.Sprintf("http://%s/%d", w.addrs[w.host(n)], n) }

// troubled is one in how many hosts hangs for ever, and one in how many hangs in each hour.
const troubled = 50

// dead reports whether host h never answers.
func (w *world) dead(h int) bool { return h%troubled == troubled/2 }

// hangs reports whether host h does not answer now. w.mu is held.
func (w *world) hangs(h int, now time.Time) bool {
	if w.dead(h) || w.calm || w.began.IsZero() {
		return w.dead(h)
	}
	return h%troubled == int(now.Sub(w.began)/time.Hour)%troubled
}

func (w *world) serve(h int, rw http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || n < 0 || n >= w.o.pages || w.host(n) != h {
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
	version, hangs := w.look(n, known)
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
	rw.Write([]byte(text(n, version))) //nolint:errcheck // What was not taken is asked for again.
}

// look notes a request for page n by somebody who has the version known, and returns what to answer.
func (w *world) look(n, known int) (version int, hangs bool) {
	now := w.clock.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.pages[n]
	if p.asked.IsZero() && !w.dead(w.host(n)) {
		w.unread--
	}
	w.late(n, now)
	p.asked = now
	p.accepted = max(p.accepted, known)
	if w.hangs(w.host(n), now) {
		w.hung++
		return p.version, true
	}
	// A page changes only after its version was taken, so each version must be told.
	if !w.began.IsZero() && !w.calm && known == p.version && w.dice.Float64() < w.o.change {
		p.version++
	}
	return p.version, false
}

// late notes for how long page n was not asked for. It is overdue when its check is late by more
// than one interval. w.mu is held.
func (w *world) late(n int, now time.Time) {
	p := &w.pages[n]
	if w.began.IsZero() || w.dead(w.host(n)) {
		return
	}
	gap := now.Sub(later(p.asked, w.began))
	w.longest = max(w.longest, gap)
	if gap <= 2*interval {
		return
	}
	p.overdue = true
	if len(w.overdue) < 10 {
		w.overdue = append(w.overdue, fmt.Sprintf("page %d of host %d, not asked for from %v to %v",
			n, w.host(n), p.asked.Sub(w.began).Round(time.Second), now.Sub(w.began).Round(time.Second)))
	}
}

// failed notes that the process says that its check of a page failed. On a busy machine such a request can
// reach its timeout before it is read here.
func (w *world) failed(url string) {
	now := w.clock.now()
	n, err := strconv.Atoi(url[strings.LastIndex(url, "/")+1:])
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || n < 0 || n >= len(w.pages) || w.url(n) != url || w.pages[n].asked.IsZero() {
		return
	}
	w.late(n, now)
	if now.Sub(w.pages[n].asked) > interval/2 {
		w.unseen++
	}
	w.pages[n].asked = now
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// read reports whether every page that can be read was asked for.
func (w *world) read() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unread == 0
}

// begin begins the day.
func (w *world) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = w.clock.now()
}

// settle ends all trouble and all change.
func (w *world) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

// settled reports whether the last version of each page was taken.
func (w *world) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, p := range w.pages {
		if p.accepted != p.version && !w.dead(w.host(n)) {
			return false
		}
	}
	return true
}

// due returns the last version of each page. All from the second on are to be told.
func (w *world) due() []int {
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
	overdue, hung, unseen int
	untaken               int // pages whose last version was never taken
	// longest is the longest time between two requests for a page whose host is not dead.
	longest time.Duration
	first   []string // the first overdue checks
}

func (w *world) verdict() pagesVerdict {
	now := w.clock.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	v := pagesVerdict{hung: w.hung, unseen: w.unseen}
	for n, p := range w.pages {
		w.late(n, now)
		if w.pages[n].overdue {
			v.overdue++
		}
		if p.accepted != p.version && !w.dead(w.host(n)) {
			v.untaken++
		}
	}
	v.longest, v.first = w.longest, w.overdue
	return v
}

// text is page n at a version, 8 KB of HTML. Its marked paragraph has no word in common with that of
// another version except the keyword.
func text(n, version int) string {
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
