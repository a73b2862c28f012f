package vokter

import (
	"context"
	"maps"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// applyAgain is how long after the configuration could not be applied to the pages of lanes
// that are shared it is tried again.
const applyAgain = 5 * time.Second

// applyFirst applies the configuration once it is known which pages are owned.
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

// applyOwned applies the configuration to the pages that are owned now. All processes have
// the same, so each page hears of it from its owner. What cannot be published for a while is
// tried again, since lanes are gained when much else goes on.
func (r *Router) applyOwned(ctx context.Context, s *stages) error {
	for {
		err := r.takeOver(s)
		if err == nil {
			err = r.apply(ctx, s)
		}
		if class, _ := pipeline.ClassOf(err); err == nil || ctx.Err() != nil || class == pipeline.ClassBroken {
			return err
		}
		r.cfg.Logger.Warn("the configuration could not be applied to all pages; it is tried again", "after", applyAgain, "error", err)
		if err := sleepContext(ctx, applyAgain); err != nil {
			return err
		}
	}
}

// takeOver tells fetch that an earlier process was offline, if that was the last that was
// told, when the lane that knows is gained.
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

// checkOnce are the pages that this run asked to be checked at once, since its checks are
// limited or their intervals forced. Router.reloading guards it.
type checkOnce map[string]bool

// forget forgets those that are not owned any more.
func (c checkOnce) forget(owned func(page string) bool) {
	maps.DeleteFunc(c, func(page string, _ bool) bool { return !owned(page) })
}
