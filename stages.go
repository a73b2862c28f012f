package vokter

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	filesource "github.com/vokter/vokter/sources/file"
	httpsource "github.com/vokter/vokter/sources/http"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/fetch/readers"
	"github.com/vokter/vokter/stages/fetch/readers/pdf"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// stages are the processors of one Run.
type stages struct {
	httpFetcher *httpsource.Fetcher
	fileFetcher *filesource.Fetcher // nil where no files may be read
	fetch       *fetch.Stage
	index       *index.Stage
	diff        *diff.Processor
	match       *match.Processor
	delivery    *delivery.Delivery
	deadLetters *delivery.DeadLetters
	health      *healthStage
	// memory is the budget that comparisons of texts share.
	memory flow.Memory
}

// consumers lists which group consumes which topic with which stage.
func (s *stages) consumers() []consumer {
	return []consumer{
		{flow.GroupFetch, flow.TopicRequests, s.fetch},
		{flow.GroupFetch, flow.TopicIngest, s.fetch},
		{flow.GroupIndex, flow.TopicDocuments, s.index},
		{flow.GroupDiff, flow.TopicSnapshots, s.diff},
		{flow.GroupMatch, flow.TopicSubscriptions, s.match},
		{flow.GroupMatch, flow.TopicChanges, s.match},
		{flow.GroupDelivery, flow.TopicNotifications, s.delivery},
		{flow.GroupDead, flow.TopicDead, s.deadLetters},
		{flow.GroupHealth, flow.TopicHealth, s.health},
		{flow.GroupHealth, flow.TopicSweeps, s.health},
	}
}

// buildStages makes the stages.
func (r *run) buildStages() (*stages, error) {
	var offline time.Time
	if r.transport.Gained() == nil { // with a shared transport takeOver reads it later
		var err error
		if offline, err = loadTime(r.transport.State(flow.GroupHealth, flow.HealthKey), nameOffline); err != nil {
			return nil, err
		}
	}
	log, note := r.cfg.Logger, flow.Observer(r.recordObservation)
	expire, versions, age := r.cfg.Expire.toPipeline(), r.cfg.Retention.Versions, r.cfg.Retention.Age
	if r.cfg.Mode == ModeCommands {
		expire.After, versions, age = -1, math.MaxInt, math.MaxInt64 // commands expire no page and delete no version
	}
	pages := httpsource.New(httpsource.Config{
		Allow: r.cfg.Fetch.Allow, UserAgent: r.cfg.Fetch.UserAgent, Version: Version(), MaxBody: r.cfg.Fetch.MaxBody,
		Concurrency: r.cfg.Fetch.Concurrency,
	})
	if err := pages.SetAccess(r.liveConfig.Load().Access); err != nil {
		return nil, err // a file of a certificate changed since Validate
	}
	fetchers := []pipeline.Fetcher{pages}
	var files *filesource.Fetcher
	if r.cfg.usesBuiltInFiles() {
		files = filesource.New(filesource.Config{Allow: r.cfg.Fetch.Files, MaxBody: r.cfg.Fetch.MaxBody, Logger: log})
		fetchers = append(fetchers, files)
	}
	fetchers = append(fetchers, r.cfg.Fetchers...)
	budget := memory.NewBudget(r.cfg.Memory).Take
	fetching := fetch.New(fetch.Config{
		Fetchers: fetchers, Readers: r.readers, Publisher: r.transport, Unsynced: r.transport.Unsynced(),
		Poster: r.transport.Poster(flow.GroupIndex, flow.TopicDocuments), Owned: r.transport.Owns,
		MaxBody: r.cfg.Fetch.MaxBody, Timeout: r.cfg.Fetch.Timeout, Concurrency: r.cfg.Fetch.Concurrency, Rate: r.cfg.Fetch.Rate, Logger: log,
		UserAgent: r.cfg.Fetch.UserAgent, Robots: r.cfg.Fetch.Robots, OfflineSince: offline,
		Room: r.transport.Room, Now: r.cfg.Now, Tracer: r.tracer, Memory: budget, Reading: r.poison.readPage, MayLead: pages.MayLead,
	})
	return &stages{
		memory:      budget,
		httpFetcher: pages,
		fileFetcher: files,
		fetch:       fetching,
		index: index.New(index.Config{
			Now: r.cfg.Now, Expire: expire, SelectorGone: r.cfg.Expire.SelectorGone,
			MinInterval: r.cfg.Fetch.MinInterval, Every: r.cfg.Every, Checks: r.cfg.Checks, Only: r.pageFilter(), Language: r.cfg.Language,
			Keep: versions, KeepFor: age, FetchTimeout: r.cfg.Fetch.Timeout, Read: fetching.ReadPushed,
			Logger: log, Observe: note, Memory: budget, Acceptable: r.checkSubscription, Decided: r.decisions.resolve, Owned: r.transport.Owns, Epoch: r.transport.Epoch,
			Current: r.transport.Publishes(flow.TopicCurrent), Link: r.diffLink,
		}),
		diff: diff.New(diff.Config{Logger: log, Observe: note, Baseline: r.cfg.Baseline, Memory: budget}),
		match: match.New(match.Config{
			Languages: r.languages, Logger: log, Observe: note, Memory: budget, Epoch: r.transport.Epoch,
			Records: r.changeSinks, Later: r.cfg.Mode == ModeCommands,
		}),
		delivery: delivery.NewDelivery(delivery.Config{
			Sinks:  r.cfg.Sinks,
			SinkOf: r.cfg.SinkOf,
			Poster: r.transport.Poster(flow.GroupDelivery, flow.TopicNotifications),
			Policy: r.cfg.deliveryPolicy(), Now: r.cfg.Now, Owned: r.transport.Owns, Epoch: r.transport.Epoch,
			Logger: log, Observe: note, Link: r.notificationLink, Source: r.eventSource, Tracer: r.tracer,
		}),
		deadLetters: delivery.NewDeadLetters(delivery.DeadConfig{Now: r.cfg.Now, Logger: log, Observe: note}),
		health: &healthStage{
			sinks: func() []string { return r.liveConfig.Load().Health },
			now:   r.cfg.Now,
		},
	}, nil
}

// pageFilter returns a function that reports whether a page is checked in this run, or nil where all
// are.
func (r *Router) pageFilter() func(page string) bool {
	if len(r.cfg.Only) == 0 {
		return nil
	}
	pages := make(map[string]bool)
	for _, u := range r.cfg.Only {
		page, _ := pageurl.Canonical(u) // Validate has checked it.
		pages[page] = true
	}
	return func(page string) bool { return pages[page] }
}

// buildPlugins returns the readers and languages that cfg asks for, beside the built-in ones.
func buildPlugins(cfg Config) (*fetch.Readers, *text.Languages, error) {
	builtin := readers.Builtin()
	if cfg.Fetch.PDF {
		r, err := pdf.New("pdftotext")
		if err != nil {
			return nil, nil, err
		}
		builtin = append(builtin, r)
	}
	registry := fetch.NewReaders(builtin...)
	registry.Replace(cfg.Readers...)
	return registry, text.NewLanguages(cfg.Stemmers...), nil
}

// newHandler returns the Watermill handler that runs p with the middleware of this package, in the
// transaction of the message's context.
func (r *run) newHandler(group string, p flow.Processor) message.NoPublishHandlerFunc {
	log := r.cfg.Logger.With("group", group)
	p = withMiddleware(p, r.cfg.Middleware[group])
	p = refusePublishedWakes(requireCommittable(recoverPanics(log)(p)))
	p = r.poison.rejectPoison(group)(p)
	p = retryFailures(log, sleepContext)(p)
	p = moveToDeadLetters(group, log, r.cfg.Now)(p)
	p = r.poison.forgetDeadLettered(group)(p)
	p = r.stopOnBroken(group)(p)
	p = traceMessages(group, r.tracer)(p)
	if group == flow.GroupIndex && r.handsOverRequests() {
		p = handOverRequests(r.transport.Owns, r.stages.fetch.Take)(p)
	}
	undecodable := moveToDeadLetters(group, log, r.cfg.Now)
	handle := func(msg *message.Message) error {
		ctx := msg.Context()
		tx, ok := flow.TxFrom(ctx)
		if !ok {
			return errors.New("vokter: a message came without its transaction; middleware must hand on the message with its context")
		}
		return tx.Handle(func() error {
			m, err := tx.Message()
			if err != nil {
				bad := flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error { return err })
				return undecodable(bad).Process(ctx, tx, m)
			}
			return p.Process(ctx, tx, m)
		})
	}
	return func(msg *message.Message) (err error) {
		// Watermill handles every message on a new goroutine with a small stack. Reused
		// goroutines have grown theirs already.
		done := make(chan struct{})
		r.workers.Go(func() {
			defer close(done)
			err = handle(msg)
		})
		<-done
		return err
	}
}

// changeSinks says which sinks get the change records of which pages.
type changeSinks struct {
	config *Config
	// pages are those with sinks of their own besides the ones of all pages, by canonical URL. Each
	// sink is listed once.
	pages map[string][]string
}

// newChangeSinks returns the changeSinks of c, which is valid. A page that several documents list has the sinks of
// the first of them that names any.
func newChangeSinks(c *Config) *changeSinks {
	s := &changeSinks{config: c, pages: make(map[string][]string)}
	for _, d := range c.Documents {
		if len(d.Changes) == 0 {
			continue
		}
		page, err := pageurl.Canonical(d.URL)
		if err != nil || s.pages[page] != nil {
			continue
		}
		all := slices.Concat(c.Changes, d.Changes)
		slices.Sort(all)
		s.pages[page] = slices.Compact(all)
	}
	return s
}

// changeSinks returns the sinks that get the change records of a page, each once. It is called for each
// change, so it reads the configuration only once.
func (r *Router) changeSinks(page string) []string {
	c := r.liveConfig.Load()
	s := r.cachedChangeSinks.Load()
	if s == nil || s.config != c {
		s = newChangeSinks(c)
		r.cachedChangeSinks.Store(s)
	}
	if sinks := s.pages[page]; sinks != nil {
		return sinks
	}
	return c.Changes
}

// notificationLink returns the address of the web page about a notification of a document, or "" where there is
// none.
func (r *Router) notificationLink(document string, n pipeline.Notification) string {
	base := r.liveConfig.Load().PublicURL
	switch {
	case base == "" || n.Type == pipeline.NotificationTypeTest || n.Type == pipeline.NotificationTypeChange:
		return ""
	case n.Health != nil && n.Health.URL == "":
		return ""
	case n.Health != nil:
		return r.link("/page", "url", n.Health.URL)
	case n.URL == "": // of several pages
		return base + "/changes"
	case n.Type == pipeline.NotificationTypeDigest || n.Version == 0:
		return r.link("/page", "url", n.URL, "document", document)
	}
	return r.diffLink(n.URL, document, n.Version)
}

// eventSource returns the name of the installation, or "".
func (r *Router) eventSource() string {
	c := r.liveConfig.Load()
	return cmp.Or(c.EventSource, c.PublicURL)
}

// diffLink returns the address of the web page about the difference between a version and the one before, or "" where
// there is none.
func (r *Router) diffLink(page, document string, version uint64) string {
	return r.link("/diff", "url", page, "document", document, "to", strconv.FormatUint(version, 10))
}

// link returns the address of a web page, with the pairs of names and values that are not empty, or "" where there is
// none.
func (r *Router) link(path string, pairs ...string) string {
	base := r.liveConfig.Load().PublicURL
	if base == "" {
		return ""
	}
	q := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return base + path + "?" + q.Encode()
}
