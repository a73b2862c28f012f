package vokter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
)

// Reload applies the Subscriptions, Documents, Access, Sinks, Readers, Health, Changes,
// Delivery, Expire, Language, EventSource and PublicURL of cfg to a running Router. It copies them, as New does, so cfg may be the
// Config of New, changed in place. A subscription that is missing in
// cfg is cancelled. One that differs is replaced, with the current version as its baseline.
//
// Subscriptions that were refused because one made at run time stood in their way are tried again.
// Those that are still refused have no line; the Logger gets a warning of each.
//
// Reload returns one line for each subscription, sink and setting that changed. Some settings take
// effect with the next start only, and their lines say so: Name, Dir, MinFree, Memory, Fetch,
// Retention, Baseline, Checks, Every, Drain, and Sources as far as they can be compared. Other plugins and
// functions stay those of New, without a line. Checks that begin later use the new Readers, which
// have no line either, since they have no names; nor has PublicURL. Where cfg is invalid or cannot be
// stored, Reload returns the reason; it may be called again.
func (r *Router) Reload(ctx context.Context, cfg Config) ([]string, error) {
	if err := r.Ready(); err != nil {
		return nil, err // r.reloadMu is held while the start waits for room on the disk
	}
	r.reloadMu.Lock()
	defer r.reloadMu.Unlock()
	old := r.liveConfig.Load()
	cfg = cfg.clone()
	cfg.Store, cfg.Transport, cfg.Only, cfg.Mode, cfg.SinkOf, cfg.Fetchers = old.Store, old.Transport, old.Only, old.Mode, old.SinkOf, old.Fetchers
	cfg.Stemmers = old.Stemmers
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
	if err := r.stages.httpFetcher.SetAccess(cfg.Access); err != nil {
		return nil, err // a file of a certificate changed since Validate; nothing else is applied
	}
	// Sinks come before subscriptions, so that no notification names a sink that does not exist yet.
	r.stages.delivery.Reconfigure(cfg.Sinks, cfg.deliveryPolicy())
	r.readers.Replace(cfg.Readers...)
	r.stages.index.SetExpiry(cfg.Expire.toPipeline(), cfg.Expire.SelectorGone)
	r.stages.index.SetLanguage(cfg.Language)
	refused := r.stages.index.TakeRefused()
	changes, err := r.applyDifferences(ctx, old, &cfg, refused)
	if err != nil {
		r.reloadFailed = true
		return nil, err
	}
	r.reloadFailed = false
	r.liveConfig.Store(&cfg)
	return slices.Concat(changes, describeOtherChanges(old, &cfg), describeChangesAtRestart(old, &cfg)), nil
}

// applyDifferences sends a command to each owned page for which cfg differs from old, and to those whose last command was
// refused. Pages of lanes gained later get their commands from applyToOwnedPages. It returns a line for each subscription
// that changed. One that is refused, because another one was made at run time, has none: the log says so.
func (r *Router) applyDifferences(ctx context.Context, old, cfg *Config, refused map[string]bool) ([]string, error) {
	if cfg.Mode != ModeAll {
		return nil, nil
	}
	var applied []flow.Applied
	b := r.newBatch(func(page string, d flow.Decision) error {
		for _, a := range d.Applied {
			a.URL = page
			applied = append(applied, a)
		}
		return nil
	})
	defer b.close()
	labels := make(subscriptionLabels)
	if r.reloadFailed {
		labels.add(old.Subscriptions)
		labels.add(cfg.Subscriptions)
		err := r.publishConfig(ctx, cfg, b)
		return labels.describe(applied), err
	}
	before := make(map[[2]string]*pageConfig)
	for _, w := range pageConfigs(old) {
		before[[2]string{w.url, w.client}] = w
	}
	for _, w := range pageConfigs(cfg) {
		key := [2]string{w.url, w.client}
		was := before[key]
		delete(before, key)
		if was != nil && !refused[w.url] && reflect.DeepEqual(was, w) || !r.transport.Owns(w.url) {
			continue
		}
		if was != nil {
			labels.add(was.subscriptions)
		}
		labels.add(w.subscriptions)
		if err := b.add(ctx, w.url, flow.TypeApply, w.applyCommand(cfg)); err != nil {
			return nil, err
		}
	}
	for _, w := range before {
		if !r.transport.Owns(w.url) {
			continue
		}
		labels.add(w.subscriptions)
		gone := &pageConfig{url: w.url, client: w.client, keepOnly: w.keepOnly}
		if err := b.add(ctx, w.url, flow.TypeApply, gone.applyCommand(cfg)); err != nil {
			return nil, err
		}
	}
	err := b.finish(ctx)
	return labels.describe(applied), err
}

// deliveryPolicy returns the settings of Delivery for package sinks.
func (c *Config) deliveryPolicy() delivery.Policy {
	return delivery.Policy{Retry: c.Delivery.Retry, DeadAfter: c.Delivery.DeadAfter, ExpireAfter: c.Delivery.ExpireAfter, Receivers: c.Delivery.Receivers}
}

// subscriptionLabels name subscriptions for the user, by document and client.
type subscriptionLabels map[[2]string]string

func (l subscriptionLabels) add(all []pipeline.Subscription) {
	for _, s := range all {
		s = s.WithDefaults()
		page, _ := pageurl.Canonical(s.URL) // Validate has checked it.
		document := flow.DocumentID(page, s.View)
		name := fmt.Sprintf("%s for client %q", s.URL, s.Client)
		if !s.IsZero() {
			name += " (document " + document[:8] + ")"
		}
		l[[2]string{document, s.Client}] = name
	}
}

// describe describes what changed, one line a subscription: those that were added or changed, and then those that are
// gone.
func (l subscriptionLabels) describe(applied []flow.Applied) []string {
	label := func(a flow.Applied) string {
		return cmp.Or(l[[2]string{a.Document, a.Client}], fmt.Sprintf("%s for client %q", a.URL, a.Client))
	}
	slices.SortFunc(applied, func(a, b flow.Applied) int { return cmp.Compare(label(a), label(b)) })
	var lines, removed []string
	for _, a := range applied {
		switch a.Outcome {
		case flow.AppliedCreated:
			lines = append(lines, "subscription added: "+label(a))
		case flow.AppliedChanged:
			lines = append(lines, strings.TrimSuffix("subscription changed: "+label(a)+"; "+a.Reason, "; "))
		case flow.AppliedRemoved:
			removed = append(removed, "subscription removed: "+label(a))
		}
	}
	return append(lines, removed...)
}

// describeOtherChanges describes the other changes that take effect at once, one a line.
func describeOtherChanges(old, cfg *Config) []string {
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
	if !slices.Equal(old.Health, cfg.Health) {
		add("health changed: %v", cfg.Health)
	}
	if !slices.Equal(old.Changes, cfg.Changes) {
		add("changes changed: %v", cfg.Changes)
	}
	if !reflect.DeepEqual(old.Delivery, cfg.Delivery) {
		add("delivery changed")
	}
	if old.EventSource != cfg.EventSource {
		add("event_source changed: %s", cfg.EventSource)
	}
	if old.Language != cfg.Language {
		add("language changed: %s", cmp.Or(cfg.Language, text.DefaultLanguage))
	}
	if old.Expire != cfg.Expire {
		add("expire changed")
	}
	return lines
}

// describeChangesAtRestart describes the changes that take effect at the next start, one a line.
func describeChangesAtRestart(old, cfg *Config) []string {
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
	later("retention", old.Retention == cfg.Retention)
	later("baseline", old.Baseline == cfg.Baseline)
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
