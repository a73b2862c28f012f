package vokter

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// Reload makes a running Router do what cfg says: its Subscriptions, Documents, Sinks,
// Health, Delivery and Expire. A subscription that is changed hears what comes after the
// version then standing; one that is gone is cancelled. Sinks are those of cfg from then
// on. It returns which subscriptions, sinks and settings changed, a line for each, also
// what takes effect with the next start only: Name, Dir, MinFree, Memory, Fetch, Versions, Checks,
// Every, Drain, and Sources as far as they can be compared. Other plugins and functions stay
// those of New, and no line tells of them. Where cfg is invalid, or cannot be stored, the error
// says why, and asking again is safe.
func (r *Router) Reload(ctx context.Context, cfg Config) ([]string, error) {
	if err := r.Ready(); err != nil {
		return nil, err // also while a start waits for room
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	old := r.live.Load()
	cfg.Store, cfg.Transport, cfg.Only, cfg.Mode = old.Store, old.Transport, old.Only, old.Mode
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
	lines := append(differences(old, &cfg), restarts(old, &cfg)...)
	// Sinks come first, so that nothing is addressed to one that is not there yet.
	r.stages.delivery.Reconfigure(cfg.Sinks, cfg.policy())
	r.stages.index.SetExpiry(cfg.Expire.After, cfg.Expire.SelectorGone)
	if err := r.publish(ctx, old, &cfg); err != nil {
		r.halfway = true
		return nil, err
	}
	r.halfway = false
	r.live.Store(&cfg)
	return lines, nil
}

// publish tells the pages that are owned what cfg asks of them and old did not. Those of
// lanes that are gained later hear of cfg then.
func (r *Router) publish(ctx context.Context, old, cfg *Config) error {
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
		if was := before[key]; (was == nil || !reflect.DeepEqual(was, w)) && r.transport.Owns(w.url) {
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

// policy is what Delivery asks of the queues.
func (c *Config) policy() sinks.Policy {
	return sinks.Policy{Retry: c.Delivery.Retry, DeadAfter: c.Delivery.DeadAfter, ExpireAfter: c.Delivery.ExpireAfter}
}

// differences says what takes effect at once.
func differences(old, cfg *Config) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	was, is := subscriptionsByPair(old), subscriptionsByPair(cfg)
	for _, k := range slices.Sorted(maps.Keys(is)) {
		switch before, ok := was[k]; {
		case !ok:
			add("subscription added: %s", k)
		case !reflect.DeepEqual(before, is[k]):
			add("subscription changed: %s", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[k]; !ok {
			add("subscription removed: %s", k)
		}
	}
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
	if !slices.Equal(old.Health, cfg.Health) {
		add("health changed: %v", cfg.Health)
	}
	if !reflect.DeepEqual(old.Delivery, cfg.Delivery) {
		add("delivery changed")
	}
	if old.Expire != cfg.Expire {
		add("expire changed")
	}
	return lines
}

// subscriptionsByPair names each subscription for the user.
func subscriptionsByPair(c *Config) map[string]pipeline.Subscription {
	by := make(map[string]pipeline.Subscription, len(c.Subscriptions))
	for _, s := range c.Subscriptions {
		s = s.WithDefaults()
		name := fmt.Sprintf("%s for client %q", s.URL, s.Client)
		if !s.IsZero() {
			page, _ := pipeline.CanonicalURL(s.URL) // Validate has seen it.
			name += " (document " + flow.DocumentID(page, s.View)[:8] + ")"
		}
		by[name] = s
	}
	return by
}

// restarts says what takes effect with the next start only.
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
	later("versions", old.Versions == cfg.Versions)
	later("checks", old.Checks == cfg.Checks)
	later("every", reflect.DeepEqual(old.Every, cfg.Every))
	later("drain", old.Drain == cfg.Drain)
	later("sources", maps.EqualFunc(old.Sources, cfg.Sources, sameSource))
	return lines
}

// sameSource reports whether two sources are the same, as far as that can be known: a
// function equals nothing, not even itself.
func sameSource(a, b pipeline.Source) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && (reflect.DeepEqual(a, b) || !reflect.DeepEqual(a, a))
}
