package vokter

import (
	"context"

	"github.com/vokter/vokter/pipeline"
)

// Watch calls tell for each change of the page at url until ctx is done, and returns nil then. With keywords it calls
// tell only where a change adds or removes one of them. The page is checked every pipeline.DefaultInterval, and what is
// known of it is in memory, so that its first check is a baseline. A check that fails is logged by slog.Default.
// Calls follow each other; Watch returns an error where url or a keyword cannot be watched.
//
// A Router does the same for many pages and clients, and remembers what it read: see New.
func Watch(ctx context.Context, url string, tell func(pipeline.Notification), keywords ...string) error {
	r, err := New(watchConfig(url, tell, keywords))
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// watchConfig returns the Config of Watch.
func watchConfig(url string, tell func(pipeline.Notification), keywords []string) Config {
	sink := Listener{OnNotification: func(_ context.Context, n pipeline.Notification) error {
		tell(n)
		return nil
	}}
	return Config{
		Sinks:         map[string]pipeline.Sink{"tell": sink},
		Subscriptions: []pipeline.Subscription{{URL: url, Keywords: keywords, Sinks: []string{"tell"}}},
	}
}
