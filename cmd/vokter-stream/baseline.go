package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// sayBaseline makes a Router of cfg log when the first version of the page stands, and how
// often it is checked from then on.
func sayBaseline(cfg *vokter.Config) {
	log := cfg.Logger
	every := time.Duration(cfg.Subscriptions[0].WithDefaults().Interval)
	if cfg.Every != nil {
		every = *cfg.Every
	} else {
		every = max(every, pipeline.DefaultMinInterval)
	}
	cfg.Middleware = map[string][]vokter.Middleware{pipeline.GroupDiff: {baselines(log, every)}}
}

// baselines wraps the stage that gets every version.
func baselines(log *slog.Logger, every time.Duration) vokter.Middleware {
	return func(next pipeline.Processor) pipeline.Processor {
		return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
			if m.Type == pipeline.TypeSnapshot {
				if s, err := pipeline.SnapshotFrom(m); err == nil && s.Previous == 0 {
					tx.OnCommit(func() {
						log.Info("the baseline stands; changes are reported from now on", "url", s.Page, "check_every", every)
					})
				}
			}
			return next.Process(ctx, tx, m)
		})
	}
}
