// Package index owns pages: the numbers of their checks, their schedule, the hashes and
// validators that stand, their versions, the order of subscribe, cancel and version, and
// when a page is given up. Nobody else decides about any of them.
//
// The function apply decides all of it, purely, over a Page. Stage is the Processor around it,
// which keeps pages in the state of a transaction and carries apply's outputs out.
package index

import (
	"bytes"
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
	// Steady is the clock that says for how long a request is outstanding; setting the wall
	// clock must not move it. Nil means time.Now, whose monotonic reading counts.
	Steady func() time.Time
	// MinInterval is what smaller intervals are raised to. Default
	// pipeline.DefaultMinInterval.
	MinInterval time.Duration
	// Every replaces all intervals and lifts MinInterval, if not nil; 0 checks again at once.
	Every *time.Duration
	// Checks is how many checks of each page this run accepts, the first at once; with Every
	// nil the others too. 0 means any number.
	Checks int
	// Only selects the pages that are checked in this run; nil means all.
	Only func(page string) bool
	// Owned says whether this process has a page now; nil means all. Others are neither waited
	// for nor overdue. It must not wait.
	Owned func(page string) bool
	// Epoch is another number each time that this process gets a page: what it asked for before
	// may have gone down with the process that it asked. nil means that it has all of them once.
	// It must not wait.
	Epoch func(page string) uint64
	// Keep is how many versions of a document are stored. Default 10.
	Keep int
	// ExpireAfter is how many checks in a row must fail for a page to be given up. Default
	// 10; negative means never. SelectorGone counts those, too, that read a page and find
	// none of its documents. SetExpiry changes both.
	ExpireAfter  int
	SelectorGone bool
	// FetchTimeout is how long a fetch may last. Default 30 s.
	FetchTimeout time.Duration
	// Memory bounds what reading the words of large texts takes. Default: no bound.
	Memory flow.Memory
	// Logger is where troubles of pages go; nil discards them.
	Logger *slog.Logger
	// Read reads pages that are pushed; nil: they go to the dead letters.
	Read Read
	// Observe is told of checks and versions.
	Observe flow.Observer
	// Acceptable returns what keeps a new subscription, valid in itself and with its defaults,
	// from being carried out by this program: a sink that it does not have, a selector that
	// it cannot read. Nil accepts all.
	Acceptable func(pipeline.Subscription) error
	// Decided is told, after the commit, how the command with this message ID ended: err is
	// nil or a *Refusal. It must not block.
	Decided func(commandID string, err error)
}

// Stage is the Processor of group index on TopicDocuments. It is safe for concurrent
// use with different pages.
type Stage struct {
	cfg   Config
	rules rules
	run   *run
	cache cache

	mu     sync.RWMutex
	expiry expiryRules
}

// expiryRules are the rules that change while the stage runs.
type expiryRules struct {
	after        int
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
	if cfg.MinInterval == 0 {
		cfg.MinInterval = pipeline.DefaultMinInterval
	}
	if cfg.Checks > 0 && cfg.Every == nil {
		cfg.Every = new(time.Duration)
	}
	if cfg.Keep <= 0 {
		cfg.Keep = 10
	}
	if cfg.FetchTimeout == 0 {
		cfg.FetchTimeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
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
		cfg.Decided = func(string, error) {}
	}
	s := &Stage{
		cfg:   cfg,
		rules: rules{MinInterval: cfg.MinInterval, Every: cfg.Every, FetchTimeout: cfg.FetchTimeout, Keep: cfg.Keep},
		run:   newRun(cfg.Checks, cfg.Only),
	}
	s.SetExpiry(cfg.ExpireAfter, cfg.SelectorGone)
	return s
}

// SetExpiry changes Config.ExpireAfter and Config.SelectorGone, for the checks that are
// complete from now on. It is safe for concurrent use.
func (s *Stage) SetExpiry(after int, selectorGone bool) {
	if after == 0 {
		after = 10
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = expiryRules{after, selectorGone}
}

// rulesNow returns the rules that hold now.
func (s *Stage) rulesNow() rules {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.rules
	r.ExpireAfter, r.SelectorGone = s.expiry.after, s.expiry.selectorGone
	return r
}

// Process handles one message of TopicDocuments or a wake. A command that is invalid is
// decided, not failed: who sent it is answered by HealthRefused. A store that cannot be read,
// or holds what this program does not understand, is Broken.
func (s *Stage) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	err := s.process(ctx, tx, m)
	if class, _ := failure.ClassOf(err); err != nil && class == failure.ClassRetry {
		// Nothing here waits for others: what is not classified is the store's.
		return failure.Broken(err)
	}
	return err
}

func (s *Stage) process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	st := tx.State(m.Key)
	stored, ok, err := st.Get(pageName)
	if err != nil {
		return err
	}
	var before Page
	if ok {
		if before, err = s.cache.page(m.Key, stored); err != nil {
			return err
		}
	}
	rules := s.rulesNow()
	do, refusal, err := s.action(ctx, tx, before, m, rules)
	if err != nil {
		return err
	}
	if refusal != nil {
		s.decide(tx, m, refusal)
		return nil
	}
	budget := s.run.budget(m.Key)
	switch m.Type {
	case flow.TypeOutcome, flow.TypePushed:
	case flow.TypeWake:
		if s.run.early(m.Key) {
			budget = new(int)
		}
	default:
		s.run.tell(m.Key)
	}
	page, out := apply(before, event{
		URL: m.Key, Now: s.cfg.Now().UTC().Round(0), Position: m.Position, Rules: rules,
		Budget: budget, AtOnce: s.run.atOnce(m.Key), Lost: !s.run.asked(before, s.cfg.Epoch(m.Key)), Nonce: rand.Text(), Do: do,
	})
	// A list that asks for nothing, or for what expired, leaves no page to be waited for.
	none := page.Incarnation == "" && (m.Type == flow.TypeApply || m.Type == flow.TypeCheckNow)
	if page.Incarnation != before.Incarnation || none {
		tx.OnCommit(func() { s.run.lives(m.Key, page.Incarnation != "") })
	}
	if page.Incarnation != "" && !page.Fetched() {
		tx.OnCommit(func() { s.run.rest(m.Key) })
	}
	for _, o := range out {
		if err := s.execute(ctx, tx, m, page, o); err != nil {
			return err
		}
	}
	if s.cfg.Checks > 0 && page.Open == nil && page.NotBefore.Sub(s.cfg.Now()) > askFor {
		tx.OnCommit(func() { s.held(m.Key, page) })
	}
	if page.URL == "" || len(out) == 0 {
		return nil
	}
	b, err := encode(page)
	if err != nil || bytes.Equal(b, stored) {
		return err
	}
	s.cache.put(m.Key, b, page)
	return st.Set(pageName, b)
}

// action reads what m is about and what state apply needs for it.
func (s *Stage) action(ctx context.Context, tx flow.Tx, p Page, m flow.Message, rules rules) (action, *flow.Refusal, error) {
	st := tx.State(m.Key)
	switch m.Type {
	case flow.TypeOutcome:
		o, err := flow.OutcomeFrom(m)
		if err != nil {
			return nil, nil, err
		}
		do := outcome{Outcome: o}
		if p.mayExpire(o, rules) {
			do.Existing, err = Subscriptions(st)
		}
		return do, nil, err
	case flow.TypePushed:
		do, err := s.push(ctx, tx, p, m)
		return do, nil, err
	case flow.TypeWake:
		return wake{}, nil, nil
	case flow.TypeCheckNow:
		return checkNow{}, nil, nil
	case flow.TypeSubscribe, flow.TypeApply, flow.TypeCancel, flow.TypeResume, flow.TypeExpire:
		if m.Position == "" {
			return nil, nil, failure.Permanent(fmt.Errorf("command %s did not come through its topic", m.ID))
		}
		return command(st, p, m, s.cfg.Acceptable)
	}
	return nil, nil, m.UnknownType(flow.GroupIndex)
}
