package noise

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

var seeds = flag.Uint64("noise.seeds", 0, "how many sites to watch")

const (
	checks = 200
	every  = 10 * time.Minute
)

var begin = time.Date(2026, 11, 2, 8, 1, 0, 0, time.UTC)

// web serves the pages of a site in rounds: the clock goes on when all pages were asked for.
type web struct {
	pages map[string]made
	rands map[string]*rand.Rand
	// between is called between two rounds; round is the one that begins.
	between func(ctx context.Context, round int)

	mu     sync.Mutex
	round  int
	waits  chan struct{} // closed when the round begins
	asked  int
	bodies map[string]string
	pasted map[string]int        // how many proposals were pasted
	wants  map[string][][]string // by page and round
}

func newWeb(seed uint64) *web {
	w := &web{pages: map[string]made{}, rands: map[string]*rand.Rand{}, waits: make(chan struct{}), bodies: map[string]string{}, pasted: map[string]int{}, wants: map[string][][]string{}, round: -1}
	for k, m := range pages() {
		w.pages[m.host()], w.rands[m.host()] = m, rand.New(rand.NewPCG(uint64(k), 77+seed))
	}
	return w
}

// host returns the name of m as that of a host.
func (m made) host() string { return strings.Trim(strings.ReplaceAll(m.name, "%", ""), "*") }

func (w *web) Schemes() []string { return []string{"noise"} }

func (w *web) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return begin.Add(time.Duration(w.round+1) * every) // a check has the time of its request
}

func (w *web) Fetch(ctx context.Context, req pipeline.FetchRequest) (pipeline.Response, error) {
	u, err := url.Parse(req.URL)
	if err != nil {
		return pipeline.Response{}, err
	}
	w.mu.Lock()
	waits := w.waits
	if w.asked++; w.asked == len(w.pages) {
		w.asked, w.waits = 0, make(chan struct{})
		next := w.round + 1
		if w.between != nil {
			w.mu.Unlock()
			w.between(ctx, next)
			w.mu.Lock()
		}
		if ctx.Err() != nil {
			w.mu.Unlock()
			return pipeline.Response{}, ctx.Err()
		}
		w.round = next
		now := begin.Add(time.Duration(next) * every)
		for host, m := range w.pages {
			body, wants := m.page(next, now, w.rands[host])
			w.bodies[host] = "<!DOCTYPE html><title>" + m.name + "</title><body>" + body
			w.wants[host] = append(w.wants[host], wants)
		}
		close(waits)
	}
	w.mu.Unlock()
	select {
	case <-waits:
	case <-ctx.Done():
		return pipeline.Response{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return pipeline.Response{URL: req.URL, Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(w.bodies[u.Host]))}, nil
}

// mailbox keeps what it gets.
type mailbox struct {
	mu  sync.Mutex
	all []pipeline.Notification
}

func (m *mailbox) Deliver(_ context.Context, n pipeline.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, n)
	return nil
}

// pastedAt is the check before which the proposals of the moment are pasted into subscriptions of their own. They are
// asked for again before the last check.
const pastedAt = 55

// watchSite takes the site through all checks, with the subscriptions to each page. It returns what the clients were
// told, and the proposals by page.
func watchSite(t *testing.T, seed uint64, subs ...pipeline.Subscription) (w *web, told []pipeline.Notification, proposals map[string][]inspect.Proposal) {
	t.Helper()
	w, m := newWeb(seed), &mailbox{}
	none := time.Duration(0)
	cfg := vokter.Config{
		Fetchers: []pipeline.Fetcher{w}, Sinks: map[string]pipeline.Sink{"box": m}, Checks: 2 * checks, Every: &none, Now: w.now,
		Fetch: vokter.FetchConfig{Concurrency: 2 * len(w.pages), Rate: 1e9, Timeout: 4 * time.Hour},
	}
	for host := range w.pages {
		for _, s := range subs {
			s.URL, s.Sinks = address(host), []string{"box"}
			cfg.Subscriptions = append(cfg.Subscriptions, s)
		}
	}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	proposals = map[string][]inspect.Proposal{}
	w.between = func(ctx context.Context, round int) {
		switch round {
		case checks:
			r.Finish()
			<-ctx.Done()
		case pastedAt, checks - 1:
			for host := range w.pages {
				e, err := r.Explain(t.Context(), address(host), inspect.ExplainFilter{Client: "plain"})
				if err != nil {
					t.Error(err)
				}
				proposals[host] = append(proposals[host], e.Proposals...)
				if round != pastedAt {
					continue
				}
				w.pasted[host] = len(e.Proposals)
				if s := paste(e.Proposals); !s.IsZero() {
					s.URL, s.Sinks = address(host), []string{"box"}
					if err := r.Subscribe(t.Context(), s); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, m.all, proposals
}

func address(host string) string { return "noise://" + host + "/" }

// paste returns a subscription with what is proposed, but for restless.
func paste(proposals []inspect.Proposal) pipeline.Subscription {
	s := pipeline.Subscription{Client: "pasted"}
	for _, p := range proposals {
		switch p.Option {
		case "ignore":
			s.Ignore = append(s.Ignore, p.Value)
		case "remove":
			s.Remove = append(s.Remove, pipeline.Selector{CSS: p.Value})
		case "flip_flop":
			s.FlipFlop, _ = strconv.Atoi(p.Value)
		}
	}
	return s
}

// figures are what a client was told of a page.
type figures struct {
	churn     []int // the checks without a true change that were told
	true, got int   // checks with a true change, and those of them that were told
	missed    []string
}

// figures returns what a client was told of a page from a check on.
func (w *web) figures(told []pipeline.Notification, host, client string, from int) (f figures) {
	texts := make([]string, checks)
	was := make([]bool, checks)
	for _, n := range told {
		if n.Client == client && strings.Contains(n.URL, "//"+host+"/") {
			i := int(n.Time.Sub(begin) / every)
			was[i] = true
			for _, d := range n.Diffs {
				texts[i] += d.Snippet + "\n" + d.Text + "\n"
			}
		}
	}
	for i, wants := range w.wants[host] {
		if i < from {
			continue
		}
		if len(wants) == 0 {
			if was[i] {
				f.churn = append(f.churn, i)
			}
			continue
		}
		f.true++
		got := true
		for _, want := range wants {
			if !strings.Contains(texts[i], want) {
				got = false
				f.missed = append(f.missed, fmt.Sprintf("check %d: %q", i, want))
			}
		}
		if got {
			f.got++
		}
	}
	return f
}

// bounds say at how many checks without a true change something may be told of a page, with and without restless:
// mute, and with what is proposed; and of how many checks with a true change a client with restless: mute may miss a
// text. Of the other pages nothing is told without a true change from the fifth check on.
var bounds = map[string]struct {
	plain, mute, pasted, missed int
	why                         string
}{
	"stock*":    {plain: checks, mute: checks, why: "its only change is an amount of money, which is never muted"},
	"weather*":  {plain: checks, mute: 8, why: "nothing else of the page changes, so that the subscriber is asked first"},
	"shop":      {plain: checks, mute: 20, pasted: 8, why: "12 advertisements: one is told until it was seen"},
	"jobs":      {plain: checks, mute: 25, why: "4 of 20 recommendations in any order: one is told until it was seen"},
	"forum":     {plain: checks, mute: 80, pasted: 12, why: "one of 70 names, which is told until it was seen; replies that are few at first"},
	"recipe":    {plain: checks, mute: 30, pasted: checks, why: "4 of 100 recommendations, which have no class"},
	"adnews":    {plain: checks, mute: 60, pasted: 4, why: "an advertisement that never returns, with news right behind it"},
	"abtest":    {plain: 120, mute: 100, pasted: 15, why: "two headings at random; after a true change flip_flop has to see both again"},
	"banner":    {plain: 120, mute: 110, pasted: 15, why: "a banner at half of the checks; flip_flop as above"},
	"latest40%": {missed: 40, why: "each change is true and looks like an advertisement"},
	"auction":   {plain: 8, mute: 8, why: "watchers, and bids, of which one in three checks has one"},
	"releases":  {plain: 8, mute: 8, why: "the number of stars does not change at each check"},
	"wiki":      {plain: 8, mute: 8, why: "the number of views does not change at each check"},
}

// proposed are the pages of which a place must be proposed, each with the options that leave it out.
var proposed = map[string][]string{
	"shop": {"remove: ['div.ad']"}, "forum": {"ignore: ['^Last post by .+$']"}, "recipe": {"remove: ['blockquote']"}, "adnews": {"remove: ['aside']"},
	"abtest": {"flip_flop: 2"}, "banner": {"flip_flop: 2", "remove: ['div.banner']"}, "jobs": {"restless: mute"},
}

// TestSite: on each page numbers are silent from the fifth check on, and every true change is told. What rotates on
// it is proposed to be left out, and with that option nothing else is left out.
func TestSite(t *testing.T) {
	if *seeds == 0 {
		t.Skip("it takes ten seconds of a processor; -noise.seeds=1")
	}
	var wanted, missing, unwanted int
	for seed := range *seeds {
		w, told, proposals := watchSite(t, seed, pipeline.Subscription{Client: "plain"}, pipeline.Subscription{Client: "mute", Restless: pipeline.RestlessMute})
		for _, m := range pages() {
			bound := bounds[m.name]
			w.check(t, seed, told, m, "plain", 1, bound.plain, 0)
			w.check(t, seed, told, m, "mute", 1, bound.mute, bound.missed)
			want := proposed[m.name]
			for _, p := range proposals[m.host()] {
				if want == nil && m.name != "latest40%" {
					unwanted++
					t.Logf("seed %d: %s: without a reason, %s", seed, m.name, p.Why())
				}
			}
			if want == nil {
				continue
			}
			if wanted++; !slices.ContainsFunc(proposals[m.host()], func(p inspect.Proposal) bool { return slices.Contains(want, p.YAML()) }) {
				missing++
				t.Logf("seed %d: %s: the proposals are %v, want one of %q", seed, m.name, proposals[m.host()], want)
			}
			if s := paste(proposals[m.host()][:w.pasted[m.host()]]); !s.IsZero() {
				w.check(t, seed, told, m, "pasted", pastedAt+2, bound.pasted, 0)
			}
		}
	}
	// Some pages take turns at random, so that over many seeds one looks calm, or busy, when it is asked for.
	if 20*missing > wanted || 4*unwanted > int(*seeds) {
		t.Errorf("%d of %d proposals are missing, %d are without a reason", missing, wanted, unwanted)
	}
}

// check reports what a client was not told of the page m from a check on, and what it was told too often.
func (w *web) check(t *testing.T, seed uint64, told []pipeline.Notification, m made, client string, from, churn, missed int) {
	t.Helper()
	f := w.figures(told, m.host(), client, from)
	t.Logf("seed %d: %s, %s: of %d true changes %d told, and %d without one", seed, m.name, client, f.true, f.got, len(f.churn))
	if f.true-f.got > missed {
		t.Errorf("seed %d: %s: %s was not told %s", seed, m.name, client, strings.Join(f.missed, ", "))
	}
	if late := len(f.churn) > 0 && f.churn[len(f.churn)-1] >= 5; late && len(f.churn) > churn {
		t.Errorf("seed %d: %s: %s was told at the checks %v, which have no true change", seed, m.name, client, f.churn)
	}
}
