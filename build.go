package vokter

import (
	"context"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
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
		pipeline.TopicRequests:  {Feedback: true, Ephemeral: true},
		pipeline.TopicDocuments: {Feedback: true},
		pipeline.TopicDead:      {Feedback: true},
	}
	for _, b := range append((&stages{}).branches(), branches...) {
		topic := t[b.topic]
		topic.Groups = append(topic.Groups, b.group)
		t[b.topic] = topic
	}
	return t
}

// open opens the transport.
func (r *Router) open() error {
	if err := r.checkGroups(); err != nil {
		return err
	}
	if r.transport != nil {
		return nil
	}
	t, err := local.Open(local.Config{
		Dir: r.cfg.Dir, MinFree: r.cfg.MinFree, Topics: topology(r.branches), Grace: closeTimeout / 2,
		Logger: r.cfg.Logger, OnFatal: r.cfg.OnFatal,
	})
	if err != nil {
		return err
	}
	r.transport = t
	return nil
}

// build makes the stages.
func (r *Router) build() *stages {
	log, note := r.cfg.Logger, pipeline.Observer(r.tally.note)
	fetchers := append([]pipeline.Fetcher{httpsource.New(httpsource.Config{
		Allow: r.cfg.Fetch.Allow, UserAgent: r.cfg.Fetch.UserAgent, Version: Version(), MaxBody: r.cfg.Fetch.MaxBody,
		Concurrency: r.cfg.Fetch.Concurrency,
	})}, r.cfg.Fetchers...)
	return &stages{
		fetch: fetch.New(fetch.Config{
			Fetchers: fetchers, Readers: r.readers, Publisher: r.transport, Unsynced: r.transport.Unsynced(),
			MaxBody: r.cfg.Fetch.MaxBody, Timeout: r.cfg.Fetch.Timeout, Concurrency: r.cfg.Fetch.Concurrency, Rate: r.cfg.Fetch.Rate, Logger: log,
			Room: func() <-chan struct{} { return roomOf(r.transport) },
		}),
		index: index.New(index.Config{
			MinInterval: r.cfg.Fetch.MinInterval, Every: r.cfg.Every, Checks: r.cfg.Checks, Only: r.only(),
			Keep: r.cfg.Versions, FetchTimeout: r.cfg.Fetch.Timeout,
			Logger: log, Observe: note, Decided: r.decisions.decided,
		}),
		diff:  diff.New(diff.Config{Logger: log, Observe: note}),
		match: match.New(match.Config{Languages: r.languages, Logger: log, Observe: note}),
		delivery: sinks.NewDelivery(sinks.Config{
			Sinks:  r.cfg.Sinks,
			Poster: r.transport.Poster(pipeline.GroupDelivery, pipeline.TopicNotifications),
			Policy: sinks.Policy{Retry: r.cfg.Delivery.Retry, DeadAfter: r.cfg.Delivery.DeadAfter},
			Logger: log, Observe: note,
		}),
	}
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

// wish is all that Config asks of one page.
type wish struct {
	url, client   string
	keep          bool
	subscriptions []Subscription
}

// wishes returns what Config asks for, by page and in its order. Where only some pages
// are checked (Config.Only), each client's wishes leave those of others alone.
func (r *Router) wishes() []*wish {
	type key struct{ page, client string }
	by := make(map[key]*wish)
	var all []*wish
	at := func(url, client string) *wish {
		page, _ := pipeline.CanonicalURL(url) // Validate has seen it.
		k := key{page: page}
		if len(r.cfg.Only) > 0 {
			k.client = client
		}
		if by[k] == nil {
			by[k] = &wish{url: page, client: k.client}
			all = append(all, by[k])
		}
		return by[k]
	}
	for _, s := range r.cfg.Subscriptions {
		s = s.WithDefaults()
		w := at(s.URL, s.Client)
		w.subscriptions = append(w.subscriptions, s)
	}
	for _, d := range r.cfg.Documents {
		w := at(d.URL, "")
		w.keep = w.keep || d.Keep
	}
	return all
}

// apply publishes what Config asks for, ends what its origin no longer asks for, and
// where a number of checks is to be made, asks for the first.
func (r *Router) apply(ctx context.Context, s *stages) error {
	wanted := make(map[string]bool)
	var batch []pipeline.Message
	flush := func(limit int) error {
		if len(batch) < limit || len(batch) == 0 {
			return nil
		}
		err := r.transport.Publish(ctx, batch...)
		batch = batch[:0]
		return err
	}
	send := func(url, typ string, body any) error {
		m, err := newCommand(url, typ, body)
		if err != nil {
			return err
		}
		batch = append(batch, m)
		return flush(256)
	}
	for _, w := range r.wishes() {
		wanted[w.url] = true
		s.index.Expect(w.url)
		if err := send(w.url, pipeline.TypeApply, pipeline.ApplyCommand{
			URL: w.url, Origin: r.cfg.Origin, Client: w.client, Keep: w.keep, Subscriptions: w.subscriptions,
		}); err != nil {
			return err
		}
	}
	now := r.cfg.Checks > 0 || r.cfg.Every != nil
	only := r.only()
	for page, state := range r.transport.States(pipeline.GroupIndex) {
		if only != nil && !only(page) {
			continue
		}
		if !wanted[page] {
			stale, err := r.made(state)
			if err != nil {
				return fmt.Errorf("reading page %s: %w", page, err)
			}
			if stale {
				if err := send(page, pipeline.TypeApply, pipeline.ApplyCommand{URL: page, Origin: r.cfg.Origin}); err != nil {
					return err
				}
			}
		}
		if now {
			s.index.Expect(page)
			if err := send(page, pipeline.TypeCheckNow, nil); err != nil {
				return err
			}
		}
	}
	return flush(1)
}

// made reports whether something of the page whose state st is was asked for by this
// Router's origin.
func (r *Router) made(st pipeline.State) (bool, error) {
	p, err := index.Load(st)
	if err != nil {
		return false, err
	}
	subs, err := index.Subscriptions(st)
	if err != nil {
		return false, err
	}
	mine := func(s pipeline.Stamped) bool { return s.Origin == r.cfg.Origin }
	return slices.Contains(p.Keep, r.cfg.Origin) || slices.ContainsFunc(subs, mine), nil
}
