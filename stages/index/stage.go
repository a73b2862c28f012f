// Package index owns pages: it numbers their checks, schedules them, keeps the hashes and
// validators of what they hold, makes versions, orders subscribe and cancel commands relative
// to versions, and gives pages up. No other package decides about these.
//
// The pure function apply makes every decision: it takes a Page and an event, and returns the
// next Page and outputs. Stage is the processor around it, which loads and stores pages and
// carries the outputs out.
package index

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Config is what New needs. The zero Config works.
type Config struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Steady is the clock that measures how long a request is outstanding; setting the wall
	// clock must not change it. Nil means time.Now, which has a monotonic reading.
	Steady func() time.Time
	// MinInterval is what smaller intervals are raised to. Default
	// pipeline.DefaultMinInterval.
	MinInterval time.Duration
	// Every replaces all intervals and lifts MinInterval, if not nil; 0 checks again at once.
	Every *time.Duration
	// Checks is how many checks of each page this run makes; 0 means any number. The first is
	// made at once, and if Every is nil the others too.
	Checks int
	// Only selects the pages that are checked in this run; nil means all.
	Only func(page string) bool
	// Owned says whether this process owns a page now; nil means all. Finished does not wait
	// for other pages, and they are never overdue. It must not block.
	Owned func(page string) bool
	// Epoch is a number that changes each time this process becomes the owner of a page:
	// requests of earlier epochs may be lost. Nil means that it owns all pages from the start.
	// It must not block.
	Epoch func(page string) uint64
	// Keep is how many versions of a document are stored, KeepFor how long one is stored after the next one took its
	// place, besides those that notifications link to. Defaults: DefaultKeep, DefaultKeepFor.
	Keep    int
	KeepFor time.Duration
	// Expire says what becomes of a page of which check after check fails, where neither the page nor a subscription
	// does. With SelectorGone a check also fails if it finds none of the page's documents. SetExpiry changes both.
	Expire       pipeline.Expire
	SelectorGone bool
	// Language is the language of texts whose language nothing tells, as a BCP 47 tag. Default
	// text.DefaultLanguage. SetLanguage changes it.
	Language string
	// FetchTimeout is how long a fetch may last. Default 30 s.
	FetchTimeout time.Duration
	// Memory bounds the memory for texts that are split into words. Default: no bound.
	Memory flow.Memory
	// Logger gets failures of pages and refused commands; nil discards them.
	Logger *slog.Logger
	// Read reads pushed pages. If it is nil, these go to the dead letters.
	Read Read
	// Observe gets an observation for each check and version.
	Observe flow.Observer
	// Acceptable returns why this program cannot serve a new subscription, which is valid and
	// has its defaults: it lacks a sink, or cannot parse a selector. Nil accepts all.
	Acceptable func(pipeline.Subscription) error
	// Current says that the current text of each document is published on flow.TopicCurrent.
	Current bool
	// Link returns the address of the web page with the difference between a version of a document and the one before,
	// or "". Nil: there is none.
	Link func(page, document string, version uint64) string
	// Decided is called after the commit with the result of a command. It must not block.
	Decided func(flow.Decision)
}

// Stage is the Processor of group index on TopicDocuments. It is safe for concurrent
// use with different pages.
type Stage struct {
	cfg   Config
	rules rules
	run   *runState
	cache cache

	mu     sync.RWMutex
	expiry expiryRules

	refusals refusals
	hosts    hostLog
	shedding shedding
}

// expiryRules are the rules that change while the stage runs.
type expiryRules struct {
	expire       pipeline.Expire
	selectorGone bool
}

var _ flow.Processor = (*Stage)(nil)

// New returns a Stage.
func New(cfg Config) *Stage {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Steady == nil {
		cfg.Steady = time.Now
	}
	cfg.MinInterval = cmp.Or(cfg.MinInterval, pipeline.DefaultMinInterval)
	if cfg.Checks > 0 && cfg.Every == nil {
		cfg.Every = new(time.Duration)
	}
	if cfg.Keep <= 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.KeepFor <= 0 {
		cfg.KeepFor = DefaultKeepFor
	}
	cfg.FetchTimeout = cmp.Or(cfg.FetchTimeout, 30*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Acceptable == nil {
		cfg.Acceptable = func(pipeline.Subscription) error { return nil }
	}
	if cfg.Owned == nil {
		cfg.Owned = func(string) bool { return true }
	}
	if cfg.Epoch == nil {
		cfg.Epoch = func(string) uint64 { return 0 }
	}
	if cfg.Decided == nil {
		cfg.Decided = func(flow.Decision) {}
	}
	s := &Stage{
		cfg:   cfg,
		rules: rules{MinInterval: cfg.MinInterval, Every: cfg.Every, FetchTimeout: cfg.FetchTimeout, Current: cfg.Current, Keep: retention{cfg.Keep, cfg.KeepFor}},
		run:   newRun(cfg.Checks),
		cache: newCache(),
		hosts: hostLog{log: cfg.Logger},
	}
	s.SetExpiry(cfg.Expire, cfg.SelectorGone)
	return s
}

// SetLanguage changes Config.Language for versions that are made from now on. It is safe for
// concurrent use.
func (s *Stage) SetLanguage(fallback string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Language = fallback
}

// fallbackLanguage returns the language of texts whose language nothing tells.
func (s *Stage) fallbackLanguage() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cfg.Language
}

// SetExpiry changes Config.Expire and Config.SelectorGone for checks that complete from
// now on. It is safe for concurrent use.
func (s *Stage) SetExpiry(expire pipeline.Expire, selectorGone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = expiryRules{expire.Or(pipeline.DefaultExpire), selectorGone}
}

// rulesNow returns the rules that hold now.
func (s *Stage) rulesNow() rules {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.rules
	r.Expire, r.SelectorGone = s.expiry.expire, s.expiry.selectorGone
	return r
}

// nonceSize is how many characters of 5 bits the nonce of a request has. It only has to differ from those of
// the few requests with the same page, incarnation and number.
const nonceSize = 13

// Process handles one message of TopicDocuments or a wake. An invalid command is no error: its
// sender is answered with a HealthRefused event. If the store cannot be read, or holds a value
// that this program does not understand, the error is Broken.
func (s *Stage) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	err := s.process(ctx, tx, m)
	if class, _ := failure.ClassOf(err); err != nil && class == failure.ClassRetry {
		// This stage waits for nothing: an error without a class comes from the store.
		return failure.Broken(err)
	}
	return err
}

func (s *Stage) process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	switch m.Type {
	case flow.TypeLinks:
		return s.handleLinks(tx, m)
	case flow.TypeCompare:
		return s.compareAgain(tx, m)
	}
	epoch := s.cfg.Epoch(m.Key)
	was, err := s.cache.load(tx, m.Key, epoch)
	if err != nil {
		return err
	}
	before := new(Page)
	if was != nil {
		before = was.page
	}
	rules := s.rulesNow()
	do, refusal, err := s.loadAction(ctx, tx, before, m, rules)
	if err != nil {
		return err
	}
	if refusal != nil {
		s.decide(tx, m, decide{Refusal: refusal, Reply: wantsReply(m)})
		return nil
	}
	budget, err := s.budget(tx.State(m.Key), before, m.Key, do)
	if err != nil {
		return err
	}
	switch m.Type {
	case flow.TypeOutcome, flow.TypePushed, flow.TypeTold:
	case flow.TypeWake:
		if s.run.tooEarly(m.Key) {
			budget = new(int)
		}
	default:
		s.run.noteCommand(m.Key)
	}
	page, out := apply(before, event{
		URL: m.Key, Now: s.cfg.Now().UTC().Round(0), Position: m.Position, Rules: rules,
		Budget: budget, AtOnce: s.run.checkAtOnce(m.Key), Lost: s.requestLost(before, epoch), Nonce: rand.Text()[:nonceSize], Do: do,
	})
	// A list without subscriptions, or with expired ones only, leaves no page to wait for.
	none := page.Incarnation == "" && (m.Type == flow.TypeApply || m.Type == flow.TypeCheckNow || m.Type == flow.TypeFollow)
	key, watched := m.Key, page.Incarnation != ""
	if page.Incarnation != before.Incarnation || none {
		tx.OnCommit(func() { s.run.noteIncarnation(key, watched) })
	}
	if watched && !page.Fetched() {
		tx.OnCommit(func() { s.run.stopFetching(key) })
	}
	for _, o := range out {
		if err := s.execute(ctx, tx, m, page, o); err != nil {
			return err
		}
		if _, ok := o.(deleteState); ok {
			was = nil
			s.cache.Drop(m.Key)
		}
	}
	if s.cfg.Checks > 0 && page.Open == nil && page.NotBefore.Sub(s.cfg.Now()) > askFor {
		until := page.NotBefore
		tx.OnCommit(func() { s.reportHeld(key, until) })
	}
	if page.URL == "" || len(out) == 0 {
		return nil
	}
	return s.cache.store(tx, m.Key, epoch, was, page)
}

// budget is how many more checks of page this run may accept; nil means any number. A page that is
// followed from a page of Config.Only is checked, too.
func (s *Stage) budget(st flow.State, p *Page, page string, do action) (*int, error) {
	begun, ok := do.(follow)
	if s.cfg.Only != nil && !s.cfg.Only(page) && (!ok || !s.cfg.Only(begun.Root)) {
		followed, err := followedFrom(st, p, s.cfg.Only)
		if err != nil || !followed {
			return new(int), err
		}
	}
	return s.run.budget(page), nil
}

// loadAction decodes m and loads the state that apply needs for it.
func (s *Stage) loadAction(ctx context.Context, tx flow.Tx, p *Page, m flow.Message, rules rules) (action, *flow.Refusal, error) {
	st := tx.State(m.Key)
	switch m.Type {
	case flow.TypeOutcome:
		o, err := flow.OutcomeFrom(m)
		if err != nil {
			return nil, nil, err
		}
		do := outcome{Outcome: o}
		if do.Replacements, err = s.replacements(ctx, st, p, o); err != nil {
			return nil, nil, err
		}
		if p.tellsClients(o, rules) {
			do.Existing, err = Subscriptions(st)
		}
		if err == nil {
			do.Feeds, err = loadFeeds(st, p, o)
		}
		if err == nil {
			os := []flow.Outcome{o}
			do.Lessons, err = s.lessons(ctx, st, p, os)
			do.Outcome = os[0]
		}
		return do, nil, err
	case flow.TypePushed:
		do, err := s.loadPush(ctx, tx, p, m)
		return do, nil, err
	case flow.TypeTold:
		t, err := flow.ToldFrom(m)
		return told{t}, nil, err
	case flow.TypeWake:
		return wake{}, nil, nil
	case flow.TypeCheckNow:
		c, err := flow.CheckNowFrom(m)
		if err != nil {
			return nil, malformedCommand(err), nil
		}
		return checkNow{After: c.After}, nil, nil
	case flow.TypeSubscribe, flow.TypeApply, flow.TypeCancel, flow.TypePause, flow.TypeResume, flow.TypeExpire, flow.TypeFollow:
		if m.Position == "" {
			return nil, nil, failure.Permanent(fmt.Errorf("command %s did not come through its topic", m.ID))
		}
		return decodeCommand(st, p, m, s.cfg.Acceptable)
	}
	return nil, nil, m.UnknownType(flow.GroupIndex)
}
