package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// site serves one page.
type site struct {
	url          string // canonical
	spellings    []string
	current      pageRevision
	earlier      []pageRevision
	hasETags     bool // it knows validators
	uniqueBodies bool // every body differs, whatever its text
	served       int
	// finalChecks are the checks that were asked for since all is calm; true where they were answered.
	finalChecks map[string]bool
	// broken pages fail: as if they were too busy, or in another way.
	broken, busy   bool
	challengesLeft int                // how many more checks find a challenge in place of the page
	lastApply      *flow.ApplyCommand // that was sent last
}

// sitesPerHost is how many sites have the same host.
const sitesPerHost = 3

func siteURL(i int) string { return fmt.Sprintf("https://site%d.example/page?n=%d", i/sitesPerHost, i) }

// hostOf returns the host of a canonical URL.
func hostOf(page string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(page, "https://"), "/")
	return host
}

// editLinks changes what the page links to: some of n sites.
func (s *site) editLinks(r *rand.Rand, n int) {
	s.current = s.current.clone()
	if len(s.current.links) > 0 && r.IntN(2) == 0 {
		i := r.IntN(len(s.current.links))
		s.current.links = slices.Delete(s.current.links, i, i+1)
		return
	}
	if url := siteURL(r.IntN(n)); !slices.Contains(s.current.links, url) {
		s.current.links = slices.Insert(s.current.links, r.IntN(len(s.current.links)+1), url)
	}
}

func newSite(r *rand.Rand, i int) *site {
	url := siteURL(i)
	return &site{
		url:       url,
		spellings: []string{url, url + "#top", fmt.Sprintf("HTTPS://Site%d.example:443/page?n=%d", i/sitesPerHost, i)},
		current:   newRevision(r), hasETags: r.IntN(2) == 0, uniqueBodies: r.IntN(3) == 0, finalChecks: make(map[string]bool),
	}
}

// edit changes the page: to something new, or back to what it was.
func (s *site) edit(r *rand.Rand) {
	next := s.current.edit(r)
	if len(s.earlier) > 0 && r.IntN(3) == 0 {
		next = s.earlier[len(s.earlier)-1-r.IntN(min(2, len(s.earlier)))]
		if r.IntN(2) == 0 {
			next.links = s.current.links
		}
	}
	s.earlier = append(s.earlier, s.current)
	s.current = next
}

// check is one request in the pool of fetch, and what came of it once it was begun.
type check struct {
	request flow.Request
	begun   bool
	result  []flow.Message
}

// checkID names a check of a page.
func checkID(r flow.Request) string { return fmt.Sprint(r.Incarnation, " ", r.Check) }

// hasKey reports whether m has key.
func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// answeredFinalChecks is how many checks that were asked for since all is calm were answered.
func (s *site) answeredFinalChecks() int {
	n := 0
	for _, answered := range s.finalChecks {
		if answered {
			n++
		}
	}
	return n
}

// observation is what a fetch saw of a document.
type observation struct {
	step int
	text renderedText
	ok   bool // the document could be read
	// texts are those of all documents where the outcome is about the page as a whole.
	texts map[string]renderedText
}

const headerObservation = "sim_seen"

// fetchProcessor is the handler of requests: it stores the request in the pool.
func (w *world) fetchProcessor(p *process) flow.Processor {
	return flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
		r, err := flow.RequestFrom(m)
		if err != nil {
			return err
		}
		tx.OnCommit(func() { p.checks = append(p.checks, &check{request: r}) })
		return nil
	})
}

func (w *world) siteByURL(url string) *site {
	for _, s := range w.sites {
		if s.url == url {
			return s
		}
	}
	return nil
}

// stepCheck begins or ends one check of the pool of p.
func (w *world) stepCheck(p *process) error {
	i := w.rng.IntN(len(p.checks))
	c := p.checks[i]
	if !c.begun {
		if w.chance(15) || w.now.After(c.request.NotAfter) {
			w.tracef("fetch: check %d of %s is lost or too late", c.request.Check, c.request.Page)
			p.checks = slices.Delete(p.checks, i, i+1)
			return nil
		}
		s := w.siteByURL(c.request.Page)
		if s == nil {
			return fmt.Errorf("a request for %q, which nobody watches", c.request.Page)
		}
		c.begun, c.result = true, w.fetch(s, c.request)
		return nil
	}
	if n := len(c.result); n > 1 && w.chance(6) { // the others come later, or never
		n = 1 + w.rng.IntN(n-1)
		w.publish(c.result[:n]...)
		c.result = c.result[n:]
		return nil
	}
	p.checks = slices.Delete(p.checks, i, i+1)
	w.publish(c.result...)
	w.tracef("fetch: outcome of check %d of %s", c.request.Check, c.request.Page)
	if w.chance(8) { // an answer that was lost on its way to the publisher
		w.stats.Duplicates++
		w.publish(c.result[w.rng.IntN(len(c.result)):]...)
	}
	if w.chance(8) {
		w.lateOutcomes = append(w.lateOutcomes, c.result...)
	}
	return nil
}

// fetch looks at the page as it is now.
func (w *world) fetch(s *site, r flow.Request) []flow.Message {
	w.stats.Checks++
	s.served++
	if this := checkID(r); hasKey(s.finalChecks, this) {
		s.finalChecks[this] = true
	}
	base := flow.Outcome{
		Page: r.Page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Time: w.now, Status: 200,
		Took: time.Second, Language: "en", Extractor: "sim",
	}
	if o := base; w.maybeFail(s, &o) {
		w.stats.Failures++
		w.tracef("fetch: check %d of %s will fail: %s, offline: %v", r.Check, r.Page, o.Class, o.Offline)
		return []flow.Message{o.Message()}
	}
	shown := s.current
	if s.challengesLeft > 0 && !w.faultsOver {
		s.challengesLeft--
		w.stats.Challenges++
		shown = newChallenge(w.rng)
	}
	texts := make(map[string]renderedText)
	for _, d := range r.Documents {
		texts[d.ID], _ = shown.render(d.View)
	}
	hash := flow.DeriveID("body", fmt.Sprint(shown))
	etag := ""
	if s.hasETags {
		etag = `"` + hash + `"`
	}
	if s.uniqueBodies {
		hash = flow.DeriveID("nonce", hash, strconv.Itoa(s.served))
	}
	if etag != "" && r.ETag == etag || r.BodyHash == hash {
		o := base
		o.Kind, o.Against = flow.OutcomeUnchanged, r.BodyHash
		w.tracef("fetch: check %d of %s: unchanged", r.Check, r.Page)
		return []flow.Message{w.outcomeMessage(o, observation{texts: texts})}
	}
	var ms []flow.Message
	for i, d := range r.Documents {
		o := base
		o.Part, o.Parts, o.Document = i, len(r.Documents), d.ID
		o.BodyHash, o.ETag = hash, etag
		content, ok := shown.render(d.View)
		th := text.Hash(content.content)
		switch {
		case !ok:
			o.Kind, o.Class, o.Reason = flow.OutcomeFailed, pipeline.FailSelectorGone, "nothing matches"
		case d.TextHash == th:
			o.Kind, o.Against = flow.OutcomeUnchanged, th
		default:
			o.Kind, o.TextHash, o.Title = flow.OutcomeRead, th, content.title
			o.Packed, o.Items = flow.PackText(content.content), content.itemKeys()
		}
		if r.Links && i == len(r.Documents)-1 {
			o.Links = &flow.Links{At: s.url, URLs: shown.links}
		}
		w.tracef("fetch: check %d of %s: document %.6s: %s, text %.8s", r.Check, r.Page, d.ID, o.Kind, th)
		ms = append(ms, w.outcomeMessage(o, observation{text: content, ok: ok}))
	}
	return ms
}

// outcomeMessage returns o as a message, with the number of what was seen in its header.
func (w *world) outcomeMessage(o flow.Outcome, seen observation) flow.Message {
	seen.step = w.steps
	w.observations = append(w.observations, seen)
	m := o.Message()
	m.Header = maps.Clone(m.Header)
	if m.Header == nil {
		m.Header = make(map[string]string)
	}
	m.Header[headerObservation] = strconv.Itoa(len(w.observations) - 1)
	return m
}

// maybeFail decides whether a check of s fails, and makes o its outcome if so.
func (w *world) maybeFail(s *site, o *flow.Outcome) bool {
	busy := s.busy
	switch {
	case w.faultsOver:
		return false
	case w.offline:
		w.stats.OfflineChecks++
		o.Offline = true
	case s.broken:
	case w.rng.IntN(10) == 0:
		busy = w.rng.IntN(4) == 0
	default:
		return false
	}
	o.Kind, o.Class, o.Reason, o.Status = flow.OutcomeFailed, pick(w.rng, []string{pipeline.FailTimeout, pipeline.FailStatus, pipeline.FailDNS}), "no answer", 0
	if busy {
		o.Class, o.Reason, o.Status, o.RetryAfter = pipeline.FailBusy, "busy", 503, time.Minute
	}
	return true
}
