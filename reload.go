package vokter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks"
	filesource "github.com/vokter/vokter/sources/file"
	"github.com/vokter/vokter/stages/index"
)

// Reload applies the Subscriptions, Documents, Access, Browser.Pages, Sinks, Readers, Health, Changes, Delivery and Expire of cfg to
// a running Router. A subscription that is missing in cfg is cancelled. One that differs is replaced,
// with the current version as its baseline.
//
// Subscriptions that were refused because one made at run time stood in their way are tried again.
// Those that are still refused have no line; the Logger gets a warning of each.
//
// Reload returns one line for each subscription, sink and setting that changed. Some settings take
// effect with the next start only, and their lines say so: Name, Dir, MinFree, Memory, Fetch, Browser,
// KeepVersions, KeepFor, Checks, Every, Drain, and Sources as far as they can be compared. Other plugins and
// functions stay those of New, without a line. Checks that begin later use the new Readers, which
// have no line either, since they have no names. Where cfg is invalid or cannot be stored, Reload
// returns the reason; it may be called again.
func (r *Router) Reload(ctx context.Context, cfg Config) ([]string, error) {
	if err := r.Ready(); err != nil {
		return nil, err // r.reloading is held while the start waits for room on the disk
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	old := r.live.Load()
	cfg.Store, cfg.Transport, cfg.Only, cfg.Mode, cfg.SinkOf = old.Store, old.Transport, old.Only, old.Mode, old.SinkOf
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if cfg.Origin != old.Origin {
		return nil, fmt.Errorf("the origin of subscriptions is %q and cannot become %q while the Router runs", old.Origin, cfg.Origin)
	}
	// Sinks come first, so that no notification names a sink that does not exist yet.
	r.stages.delivery.Reconfigure(cfg.Sinks, cfg.policy())
	r.readers.Replace(cfg.Readers...)
	if err := r.stages.pages.SetAccess(cfg.Access); err != nil {
		return nil, err // a file of a certificate changed since Validate
	}
	r.stages.tabs.SetPages(cfg.Browser.Pages)
	r.stages.index.SetExpiry(cfg.Expire.After, cfg.Expire.SelectorGone)
	r.stages.index.SetLanguage(cfg.Language)
	refused := r.stages.index.TakeRefused()
	changes, err := r.changedSubscriptions(old, &cfg, refused)
	if err == nil {
		err = r.publish(ctx, old, &cfg, refused)
	}
	if err != nil {
		r.halfway = true
		return nil, err
	}
	r.halfway = false
	r.live.Store(&cfg)
	return slices.Concat(changes, differences(old, &cfg), restarts(old, &cfg)), nil
}

// publish sends a command to each owned page for which cfg differs from old, and to those whose
// last command was refused. Pages of lanes gained later get their commands from applyOwned.
func (r *Router) publish(ctx context.Context, old, cfg *Config, refused map[string]bool) error {
	if cfg.Mode != ModeAll {
		return nil
	}
	if r.halfway {
		return r.applyAll(ctx, r.stages, cfg)
	}
	b := &batch{transport: r.transport, now: r.cfg.Now}
	before := make(map[[2]string]*wish)
	for _, w := range wishes(old) {
		before[[2]string{w.url, w.client}] = w
	}
	for _, w := range wishes(cfg) {
		key := [2]string{w.url, w.client}
		if was := before[key]; (was == nil || refused[w.url] || !reflect.DeepEqual(was, w)) && r.transport.Owns(w.url) {
			if err := b.send(ctx, w.url, flow.TypeApply, w.command(cfg)); err != nil {
				return err
			}
		}
		delete(before, key)
	}
	for _, w := range before {
		if !r.transport.Owns(w.url) {
			continue
		}
		gone := &wish{url: w.url, client: w.client, keepOnly: w.keepOnly}
		if err := b.send(ctx, w.url, flow.TypeApply, gone.command(cfg)); err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// policy returns the settings of Delivery for package sinks.
func (c *Config) policy() sinks.Policy {
	return sinks.Policy{Retry: c.Delivery.Retry, DeadAfter: c.Delivery.DeadAfter, ExpireAfter: c.Delivery.ExpireAfter, Receivers: c.Delivery.Receivers}
}

// changedSubscriptions describes which subscriptions change, one a line. Those that will be
// refused, because one that was made at run time stands in their way, are left out: the log says
// so. A subscription to a page in refused that is not in force counts as added.
func (r *Router) changedSubscriptions(old, cfg *Config, refused map[string]bool) ([]string, error) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	was, is := subscriptionsByPair(old), subscriptionsByPair(cfg)
	for _, k := range slices.Sorted(maps.Keys(is)) {
		s := is[k]
		page, _ := pageurl.Canonical(s.URL) // Validate has checked it.
		before, ok := was[k]
		same := ok && reflect.DeepEqual(before, s)
		if same && !refused[page] {
			continue
		}
		origin, paused := "", false
		if r.transport.Owns(page) {
			var err error
			if origin, paused, err = index.Standing(r.transport.State(flow.GroupIndex, page), page, s); err != nil {
				return nil, fmt.Errorf("reading page %s: %w", page, err)
			}
		}
		switch {
		case origin == flow.OriginAPI && cfg.Origin != flow.OriginAPI:
		case !ok || refused[page] && origin == "":
			add("subscription added: %s", k)
		case same:
		case paused && !cfg.ResumeExpired:
			add("subscription changed: %s; it stays paused until it is resumed", k)
		default:
			add("subscription changed: %s", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[k]; !ok {
			add("subscription removed: %s", k)
		}
	}
	return lines, nil
}

// differences describes the other changes that take effect at once, one a line.
func differences(old, cfg *Config) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if !reflect.DeepEqual(old.Documents, cfg.Documents) {
		add("documents changed")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		if old.Sinks[name] == nil {
			add("sink added: %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Sinks)) {
		if cfg.Sinks[name] == nil {
			add("sink removed: %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Access)) {
		if before, ok := old.Access[name]; !ok {
			add("access added: %s", name)
		} else if !reflect.DeepEqual(before, cfg.Access[name]) {
			add("access changed: %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Access)) {
		if _, ok := cfg.Access[name]; !ok {
			add("access removed: %s", name)
		}
	}
	for _, page := range slices.Sorted(maps.Keys(cfg.Browser.Pages)) {
		if !reflect.DeepEqual(old.Browser.Pages[page], cfg.Browser.Pages[page]) {
			add("fetch changed: %s", page)
		}
	}
	for _, page := range slices.Sorted(maps.Keys(old.Browser.Pages)) {
		if _, ok := cfg.Browser.Pages[page]; !ok {
			add("fetch changed: %s", page)
		}
	}
	if !slices.Equal(old.Health, cfg.Health) {
		add("health changed: %v", cfg.Health)
	}
	if !slices.Equal(old.Changes, cfg.Changes) {
		add("changes changed: %v", cfg.Changes)
	}
	if !reflect.DeepEqual(old.Delivery, cfg.Delivery) {
		add("delivery changed")
	}
	if old.Language != cfg.Language {
		add("language changed: %s", cmp.Or(cfg.Language, text.DefaultLanguage))
	}
	if old.Expire != cfg.Expire {
		add("expire changed")
	}
	return lines
}

// subscriptionsByPair returns the subscriptions of c by a name for the user: URL, client and
// document.
func subscriptionsByPair(c *Config) map[string]pipeline.Subscription {
	by := make(map[string]pipeline.Subscription, len(c.Subscriptions))
	for _, s := range c.Subscriptions {
		s = s.WithDefaults()
		name := fmt.Sprintf("%s for client %q", s.URL, s.Client)
		if !s.IsZero() {
			page, _ := pageurl.Canonical(s.URL) // Validate has checked it.
			name += " (document " + flow.DocumentID(page, s.View)[:8] + ")"
		}
		by[name] = s
	}
	return by
}

// restarts describes the changes that take effect at the next start, one a line.
func restarts(old, cfg *Config) []string {
	var lines []string
	later := func(what string, same bool) {
		if !same {
			lines = append(lines, what+" changed: this takes effect with the next start")
		}
	}
	later("name", old.Name == cfg.Name)
	later("data", old.Dir == cfg.Dir)
	later("min_free", old.MinFree == cfg.MinFree)
	later("memory", old.Memory == cfg.Memory)
	later("fetch", reflect.DeepEqual(old.Fetch, cfg.Fetch))
	later("browser", old.Browser.SameProcess(cfg.Browser))
	later("keep_versions", old.KeepVersions == cfg.KeepVersions)
	later("keep_for", old.KeepFor == cfg.KeepFor)
	later("checks", old.Checks == cfg.Checks)
	later("every", reflect.DeepEqual(old.Every, cfg.Every))
	later("drain", old.Drain == cfg.Drain)
	later("sources", maps.EqualFunc(old.Sources, cfg.Sources, sameSource))
	return lines
}

// sameSource reports whether two sources are equal. Those that cannot be compared, because they
// hold functions, count as equal where their types are.
func sameSource(a, b pipeline.Source) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && (reflect.DeepEqual(a, b) || !reflect.DeepEqual(a, a))
}

// wish holds all that a Config asks of one page.
type wish struct {
	url, client   string
	keep          bool
	keepOnly      bool // only keep changes, not the subscriptions
	keepInterval  pipeline.Interval
	language      string // of the page, if it is kept
	keepVersions  int    // of its documents, if it is kept
	keepFor       time.Duration
	subscriptions []pipeline.Subscription
}

// wishes returns one wish for each page of cfg, in the order of cfg. With Config.Only there is
// one for each page and client, so that a run with some subscriptions leaves those of other
// clients as they are.
func wishes(cfg *Config) []*wish {
	type key struct{ page, client string }
	by := make(map[key]*wish)
	var all []*wish
	at := func(url, client string) *wish {
		page, _ := pageurl.Canonical(url) // Validate has checked it.
		k := key{page: page}
		if len(cfg.Only) > 0 {
			k.client = client
		}
		if by[k] == nil {
			by[k] = &wish{url: page, client: k.client}
			all = append(all, by[k])
		}
		return by[k]
	}
	for _, s := range cfg.Subscriptions {
		s = s.WithDefaults()
		w := at(s.URL, s.Client)
		w.subscriptions = append(w.subscriptions, s)
	}
	for _, d := range cfg.Documents {
		w := at(d.URL, "")
		w.keepOnly = len(cfg.Only) > 0
		w.keep = w.keep || d.Keep
		w.keepInterval, w.language = d.Interval, d.Language
		w.keepVersions, w.keepFor = d.KeepVersions, d.KeepFor
	}
	return all
}

// command returns the command that makes w the whole configuration of its page.
func (w *wish) command(cfg *Config) flow.ApplyCommand {
	return flow.ApplyCommand{
		URL: w.url, Origin: cfg.Origin, Client: w.client, Keep: w.keep, KeepInterval: w.keepInterval, Language: w.language, KeepOnly: w.keepOnly,
		KeepVersions: w.keepVersions, KeepFor: pipeline.Duration(w.keepFor),
		Subscriptions: w.subscriptions, Resume: cfg.ResumeExpired,
	}
}

// batch collects commands and publishes them together. They are durable after flush, which waits for the disk
// once: a crash before that loses the last of them, and the next start sends all of them again.
type batch struct {
	transport flow.Transport
	now       func() time.Time
	messages  []flow.Message
}

// batchSize is how many commands are published together.
const batchSize = 256

func (b *batch) send(ctx context.Context, url, typ string, body any) error {
	m, err := newCommand(url, typ, body, b.now())
	if err != nil {
		return err
	}
	if len(b.messages) == batchSize { // flush has at least one left
		if err := b.transport.Unsynced().Publish(ctx, b.messages...); err != nil {
			return err
		}
		b.messages = b.messages[:0]
	}
	b.messages = append(b.messages, m)
	return nil
}

// flush publishes the rest.
func (b *batch) flush(ctx context.Context) error {
	if len(b.messages) == 0 {
		return nil
	}
	err := b.transport.Publish(ctx, b.messages...)
	b.messages = b.messages[:0]
	return err
}

// apply sends commands to the owned pages: the wishes of the current Config, and the end of
// subscriptions of its origin that it no longer has. With Config.Checks or Config.Every it also
// asks for the first check.
func (r *Router) apply(ctx context.Context, s *stages) error {
	r.reloading.Lock() // Reload must not publish a newer Config in between
	defer r.reloading.Unlock()
	return r.applyAll(ctx, s, r.live.Load())
}

// applyAll is apply for cfg. The caller holds r.reloading.
func (r *Router) applyAll(ctx context.Context, s *stages, cfg *Config) error {
	start := r.cfg.Now().UTC() // a page that is first checked after it needs no second check
	wanted := make(map[string]bool)
	b := &batch{transport: r.transport, now: r.cfg.Now}
	all := wishes(cfg)
	for i, w := range all {
		all[i] = nil // there may be many, and each is needed once
		wanted[w.url] = true
		if !r.transport.Owns(w.url) {
			continue
		}
		s.index.Expect(w.url)
		if err := b.send(ctx, w.url, flow.TypeApply, w.command(cfg)); err != nil {
			return err
		}
	}
	now := cfg.Checks > 0 || cfg.Every != nil
	only := r.only()
	r.asked.forget(r.transport.Owns)
	var asked []string
	for page, state := range r.transport.States(flow.GroupIndex, "") {
		if !r.transport.Owns(page) {
			continue
		}
		if only != nil && !only(page) {
			if followed, err := index.FollowedFrom(state, only); err != nil {
				return fmt.Errorf("reading page %s: %w", page, err)
			} else if !followed {
				continue
			}
		}
		if !wanted[page] {
			origins, err := index.Origins(state)
			if err != nil {
				return fmt.Errorf("reading page %s: %w", page, err)
			}
			if slices.Contains(origins, cfg.Origin) {
				if err := b.send(ctx, page, flow.TypeApply, (&wish{url: page}).command(cfg)); err != nil {
					return err
				}
			}
		}
		if (now || s.files != nil && strings.HasPrefix(page, filesource.Scheme+":")) && !r.asked[page] {
			s.index.Expect(page)
			if err := b.send(ctx, page, flow.TypeCheckNow, flow.CheckNow{After: start}); err != nil {
				return err
			}
			asked = append(asked, page)
		}
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	for _, page := range asked {
		r.asked[page] = true
	}
	return nil
}

// fileChanged asks for a check of the page of a file that changed. It returns false where the
// page is not watched here any more.
func (r *Router) fileChanged(ctx context.Context, page string) bool {
	state, err := index.Load(r.transport.State(flow.GroupIndex, page))
	if err == nil && (state.Incarnation == "" || !r.transport.Owns(page)) {
		return false
	}
	b := &batch{transport: r.transport, now: r.cfg.Now}
	if err == nil {
		err = b.send(ctx, page, flow.TypeCheckNow, nil)
	}
	if err == nil {
		err = b.flush(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("a file that changed is not checked before its interval is over", "page", page, "err", err)
	}
	return true
}

// applyAgain is the pause after the configuration could not be applied to the pages of a shared
// transport.
const applyAgain = 5 * time.Second

// applyFirst applies the configuration. With a shared transport it first waits until the
// process owns lanes.
func (r *Router) applyFirst(ctx context.Context, s *stages) error {
	gained := r.transport.Gained()
	if gained == nil {
		return r.apply(ctx, s)
	}
	select {
	case <-gained:
		return r.applyOwned(ctx, s)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// applyOwned applies the configuration to the pages that are owned now. All processes have the
// same configuration, so each page gets it from its owner. A failure is tried again: it is
// likely during a rebalance.
func (r *Router) applyOwned(ctx context.Context, s *stages) error {
	for {
		err := r.takeOver(s)
		if err == nil {
			err = r.apply(ctx, s)
		}
		if class, _ := failure.ClassOf(err); err == nil || ctx.Err() != nil || class == failure.ClassBroken {
			return err
		}
		r.cfg.Logger.Warn("the configuration could not be applied to all pages; trying again", "after", applyAgain, "error", err)
		if err := sleepContext(ctx, applyAgain); err != nil {
			return err
		}
	}
}

// takeOver tells fetch since when an earlier process was offline, if it still was when it last
// reported. It does so when the process gains the lane of flow.HealthKey, which keeps that
// state.
func (r *Router) takeOver(s *stages) error {
	recalled := r.recalls
	if r.recalls = r.transport.Owns(flow.HealthKey); !r.recalls || recalled {
		return nil
	}
	since, err := getTime(r.transport.State(flow.GroupHealth, flow.HealthKey), nameOffline)
	if err != nil {
		r.recalls = false
		return err
	}
	if !since.IsZero() {
		s.fetch.TakeOver(since)
	}
	return nil
}

// checkOnce holds the pages whose first check this run asked for, because of Config.Checks or
// Config.Every. Router.reloading guards it.
type checkOnce map[string]bool

// forget removes the pages that are no longer owned.
func (c checkOnce) forget(owned func(page string) bool) {
	maps.DeleteFunc(c, func(page string, _ bool) bool { return !owned(page) })
}
