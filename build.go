package vokter

import (
	"context"
	"math"
	"time"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/sinks"
	httpsource "github.com/vokter/vokter/sources/http"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Topology says which topics there are and which consumer groups of the stages read
// them. A program that opens the embedded transport itself, for Config.Transport,
// declares this in local.Config.Topics, with the groups of its Router.Handle added.
func Topology() map[string]local.Topic { return topology(nil) }

// topology is Topology with the groups of branches.
func topology(branches []branch) map[string]local.Topic {
	t := map[string]local.Topic{
		// These two and the dead letters close circles: index asks fetch, whose answers
		// index reads. A handler that waited for room in them could wait for itself.
		// Requests are kept in memory alone, since index asks again after every start.
		flow.TopicRequests:  {Feedback: true, Ephemeral: true},
		flow.TopicDocuments: {Feedback: true},
		flow.TopicDead:      {Feedback: true},
		flow.TopicHealth:    {Feedback: true},
		flow.TopicSweeps:    {Feedback: true},
		// Who waits for a decision gives up after seconds.
		flow.TopicDecisions: {Feedback: true, Ephemeral: true},
	}
	t[flow.TopicIngest] = local.Topic{Entry: true} // whoever pushes pages waits where they are worked on
	for _, b := range append((&stages{}).branches(), branches...) {
		topic := t[b.topic]
		topic.Groups = append(topic.Groups, b.group)
		t[b.topic] = topic
	}
	return t
}

// open opens the transport, or starts the one that is given; errNotStarted says that it was
// asked to end meanwhile.
func (r *Router) open(ctx context.Context) error {
	if err := r.checkGroups(); err != nil {
		return err
	}
	if r.transport != nil {
		return r.startTransport(ctx)
	}
	c := local.Config{
		Dir: r.cfg.Dir, MinFree: r.cfg.MinFree, Topics: topology(r.branches), Grace: closeTimeout / 2, Migrations: Migrations(),
		Now: r.cfg.Now, Asleep: r.cfg.Mode.asleep(), KeepUndeclared: r.cfg.Mode != ModeAll, Logger: r.cfg.Logger, OnFatal: r.cfg.OnFatal, OnBroken: r.stop,
	}
	if r.cfg.Store != nil {
		c.Dir, c.Store, c.Namespace = "", r.cfg.Store.db, r.cfg.Name
	}
	t, err := local.Open(c)
	if err != nil {
		return err
	}
	r.transport = t
	return t.Start(ctx, r.wiring())
}

// build makes the stages.
func (r *Router) build() (*stages, error) {
	var offline time.Time
	if r.transport.Gained() == nil { // what is shared is known later, see takeOver
		var err error
		if offline, err = getTime(r.transport.State(flow.GroupHealth, flow.HealthKey), nameOffline); err != nil {
			return nil, err
		}
	}
	log, note := r.cfg.Logger, flow.Observer(r.tally.Note)
	expireAfter, versions := r.cfg.Expire.After, r.cfg.Versions
	if r.cfg.Mode == ModeCommands {
		expireAfter, versions = -1, math.MaxInt // whoever looks decides nothing
	}
	acceptable := func(s pipeline.Subscription) error { return r.live.Load().validate(s) }
	if r.cfg.Mode == ModeCommands {
		acceptable = nil // the sinks are not known
	}
	pages := httpsource.New(httpsource.Config{
		Allow: r.cfg.Fetch.Allow, UserAgent: r.cfg.Fetch.UserAgent, Version: Version(), MaxBody: r.cfg.Fetch.MaxBody,
		Concurrency: r.cfg.Fetch.Concurrency,
	})
	fetchers := append([]pipeline.Fetcher{pages}, r.cfg.Fetchers...)
	fetching := fetch.New(fetch.Config{
		Fetchers: fetchers, Readers: r.readers, Publisher: r.transport, Unsynced: r.transport.Unsynced(),
		MaxBody: r.cfg.Fetch.MaxBody, Timeout: r.cfg.Fetch.Timeout, Concurrency: r.cfg.Fetch.Concurrency, Rate: r.cfg.Fetch.Rate, Logger: log,
		OfflineSince: offline,
		Room:         r.transport.Room, Now: r.cfg.Now,
	})
	budget := memory.NewBudget(r.cfg.Memory).Take
	return &stages{
		pages: pages,
		fetch: fetching,
		index: index.New(index.Config{
			Now: r.cfg.Now, ExpireAfter: expireAfter, SelectorGone: r.cfg.Expire.SelectorGone,
			MinInterval: r.cfg.Fetch.MinInterval, Every: r.cfg.Every, Checks: r.cfg.Checks, Only: r.only(),
			Keep: versions, FetchTimeout: r.cfg.Fetch.Timeout, Read: fetching.ReadPushed,
			Logger: log, Observe: note, Memory: budget, Acceptable: acceptable, Decided: r.decisions.decided, Owned: r.transport.Owns, Epoch: r.transport.Epoch,
		}),
		diff:  diff.New(diff.Config{Logger: log, Observe: note, Memory: budget}),
		match: match.New(match.Config{Languages: r.languages, Logger: log, Observe: note, Memory: budget}),
		delivery: sinks.NewDelivery(sinks.Config{
			Sinks:  r.cfg.Sinks,
			Poster: r.transport.Poster(flow.GroupDelivery, flow.TopicNotifications),
			Policy: r.cfg.policy(), Now: r.cfg.Now, Owned: r.transport.Owns, Epoch: r.transport.Epoch,
			Logger: log, Observe: note,
		}),
		dead: sinks.NewDeadLetters(sinks.DeadConfig{Now: r.cfg.Now, Logger: log, Observe: note}),
		health: &healthStage{
			sinks: func() []string { return r.live.Load().Health },
			now:   r.cfg.Now,
		},
	}, nil
}

// only returns which pages are checked in this run; nil means all.
func (r *Router) only() func(page string) bool {
	if len(r.cfg.Only) == 0 {
		return nil
	}
	pages := make(map[string]bool)
	for _, u := range r.cfg.Only {
		page, _ := pipeline.CanonicalURL(u) // Validate has seen it.
		pages[page] = true
	}
	return func(page string) bool { return pages[page] }
}
