package vokter

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	filesource "github.com/vokter/vokter/sources/file"
	"github.com/vokter/vokter/stages/index"
)

// pageConfig holds all that a Config asks of one page.
type pageConfig struct {
	url, client   string
	keep          bool
	keepOnly      bool // only keep changes, not the subscriptions
	keepInterval  pipeline.Interval
	language      string    // of the page, if it is kept
	retention     Retention // of its documents, if it is kept
	expire        pipeline.Expire
	subscriptions []pipeline.Subscription
}

// pageConfigs returns one pageConfig for each page of cfg, in the order of cfg. With Config.Only there is
// one for each page and client, so that a run with some subscriptions leaves those of other
// clients as they are.
func pageConfigs(cfg *Config) []*pageConfig {
	type key struct{ page, client string }
	by := make(map[key]*pageConfig)
	var all []*pageConfig
	at := func(url, client string) *pageConfig {
		page, _ := pageurl.Canonical(url) // Validate has checked it.
		k := key{page: page}
		if len(cfg.Only) > 0 {
			k.client = client
		}
		if by[k] == nil {
			by[k] = &pageConfig{url: page, client: k.client}
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
		w.expire = d.Expire
		w.retention = d.Retention
	}
	return all
}

// applyCommand returns the command that makes w the whole configuration of its page.
func (w *pageConfig) applyCommand(cfg *Config) flow.ApplyCommand {
	return flow.ApplyCommand{
		URL: w.url, Origin: cfg.Origin, Client: w.client, Keep: w.keep, KeepInterval: w.keepInterval, Language: w.language, KeepOnly: w.keepOnly,
		Expire:       w.expire,
		KeepVersions: w.retention.Versions, KeepFor: pipeline.Duration(w.retention.Age),
		Subscriptions: w.subscriptions, Resume: cfg.ResumeExpired,
	}
}

// applyConfig sends commands to the owned pages: what the current Config wants of them, and the end of
// subscriptions of its origin that it no longer has. With Config.Checks or Config.Every it also
// asks for the first check.
func (r *Router) applyConfig(ctx context.Context) error {
	r.reloadMu.Lock() // Reload must not publish a newer Config in between
	defer r.reloadMu.Unlock()
	return r.publishConfig(ctx, r.liveConfig.Load(), r.newBatch(nil))
}

// publishConfig is applyConfig for cfg with the empty batch b. The caller holds r.reloadMu.
func (r *Router) publishConfig(ctx context.Context, cfg *Config, b *commandBatch) error {
	start := r.cfg.Now().UTC() // a page that is first checked after it needs no second check
	wanted := make(map[string]bool)
	all := pageConfigs(cfg)
	for i, w := range all {
		all[i] = nil // there may be many, and each is needed once
		wanted[w.url] = true
		if !r.transport.Owns(w.url) {
			continue
		}
		r.stages.index.Expect(w.url)
		if err := b.add(ctx, w.url, flow.TypeApply, w.applyCommand(cfg)); err != nil {
			return err
		}
	}
	now := cfg.Checks > 0 || cfg.Every != nil
	only := r.pageFilter()
	maps.DeleteFunc(r.requestedChecks, func(page string, _ bool) bool { return !r.transport.Owns(page) })
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
			if _, ok := origins[cfg.Origin]; ok {
				if err := b.add(ctx, page, flow.TypeApply, (&pageConfig{url: page}).applyCommand(cfg)); err != nil {
					return err
				}
			}
		}
		if (now || r.stages.fileFetcher != nil && strings.HasPrefix(page, filesource.Scheme+":")) && !r.requestedChecks[page] {
			r.stages.index.Expect(page)
			if err := b.add(ctx, page, flow.TypeCheckNow, flow.CheckNow{After: start}); err != nil {
				return err
			}
			asked = append(asked, page)
		}
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	for _, page := range asked {
		r.requestedChecks[page] = true
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
	b := r.newBatch(nil)
	if err == nil {
		err = b.add(ctx, page, flow.TypeCheckNow, nil)
	}
	if err == nil {
		err = b.finish(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Warn("a file that changed is not checked before its interval is over", "page", page, "err", err)
	}
	return true
}

// applyRetryDelay is the pause after the configuration could not be applied to the pages of a shared
// transport.
const applyRetryDelay = 5 * time.Second

// applyAtStart applies the configuration. With a shared transport it first waits until the
// process owns lanes.
func (r *run) applyAtStart(ctx context.Context) error {
	gained := r.transport.Gained()
	if gained == nil {
		return r.applyConfig(ctx)
	}
	select {
	case <-gained:
		return r.applyToOwnedPages(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// applyToOwnedPages applies the configuration to the pages that are owned now. All processes have the
// same configuration, so each page gets it from its owner. A failure is tried again: it is
// likely during a rebalance.
func (r *run) applyToOwnedPages(ctx context.Context) error {
	for {
		err := r.restoreOffline()
		if err == nil {
			err = r.applyConfig(ctx)
		}
		if class, _ := failure.ClassOf(err); err == nil || ctx.Err() != nil || class == failure.ClassBroken {
			return err
		}
		r.cfg.Logger.Warn("the configuration could not be applied to all pages; trying again", "after", applyRetryDelay, "error", err)
		if err := sleepContext(ctx, applyRetryDelay); err != nil {
			return err
		}
	}
}

// restoreOffline tells fetch since when an earlier process was offline, if it still was when it last
// reported. It does so when the process gains the lane of flow.HealthKey, which keeps that
// state.
func (r *run) restoreOffline() error {
	recalled := r.offlineRestored
	if r.offlineRestored = r.transport.Owns(flow.HealthKey); !r.offlineRestored || recalled {
		return nil
	}
	since, err := loadTime(r.transport.State(flow.GroupHealth, flow.HealthKey), nameOffline)
	if err != nil {
		r.offlineRestored = false
		return err
	}
	if !since.IsZero() {
		r.stages.fetch.TakeOver(since)
	}
	return nil
}

// pageSet is a set of pages.
type pageSet map[string]bool
