package manage

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// SinkStore keeps the sinks that are made at run time, beside those of the configuration.
type SinkStore interface {
	// Kinds returns the kinds of sinks that can be made.
	Kinds() []client.SinkKind
	// Sinks returns the sinks without their secrets.
	Sinks() ([]client.Sink, error)
	// Put adds or replaces a sink, which is in force when it returns nil. Its error has the mistakes as joined
	// pipeline.FieldErrors.
	Put(ctx context.Context, s client.Sink) error
	// Remove removes a sink.
	Remove(ctx context.Context, sink string) error
}

// noSinks is the answer of a process without a SinkStore.
var noSinks = &flow.Refusal{Code: flow.CodeConflict, Message: "this process keeps no receivers; start one with serve, or with run and a data directory"}

func (a *api) addSinks() {
	add(a, route{
		method: http.MethodGet, path: "/sinks/kinds", id: "list-sink-kinds", scope: config.ScopeAdmin, allClients: true, beforeRunning: true,
		summary: "Lists the kinds of sinks that can be made, with their options", description: "A kind that runs commands stands in a configuration only.",
	}, func(context.Context, *struct{}) (client.SinkKinds, error) {
		if a.sinks == nil {
			return client.SinkKinds{Kinds: []client.SinkKind{}}, nil
		}
		return client.SinkKinds{Kinds: a.sinks.Kinds()}, nil
	})
	add(a, route{
		method: http.MethodGet, path: "/sinks", id: "list-sinks", scope: config.ScopeAdmin, allClients: true, beforeRunning: true,
		summary: "Lists the sinks that were made at run time", description: "Their secrets are left out. Those of the configuration are among the receivers only.",
	}, func(context.Context, *struct{}) (out client.Sinks, err error) {
		if out.Sinks = []client.Sink{}; a.sinks != nil {
			out.Sinks, err = a.sinks.Sinks()
		}
		return out, err
	})
	type putInput struct{ Body client.Sink }
	addNoContent(a, route{
		method: http.MethodPut, path: "/sinks", id: "put-sink", scope: config.ScopeAdmin, allClients: true, timeout: longTimeout,
		summary: "Makes a sink, or replaces one that was made at run time", description: "It is kept in the data directory and in force with the response.",
	}, func(ctx context.Context, in *putInput) error {
		if a.sinks == nil {
			return noSinks
		}
		return a.sinks.Put(ctx, in.Body)
	})
	type removeInput struct{ Body client.SinkRef }
	addNoContent(a, route{
		method: http.MethodPost, path: "/sinks/remove", id: "remove-sink", scope: config.ScopeAdmin, allClients: true, timeout: longTimeout,
		summary: "Removes a sink that was made at run time", description: "Not one that a subscription or the configuration names: 409.",
	}, func(ctx context.Context, in *removeInput) error {
		if a.sinks == nil {
			return noSinks
		}
		for f := (inspect.ListFilter{Limit: 1000}); ; {
			pages, next, err := a.service.Pages(ctx, f)
			if err != nil {
				return err
			}
			for _, p := range pages {
				for _, s := range p.Subscriptions {
					if slices.Contains(s.Sinks, in.Body.Sink) {
						return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("the subscription of %q to %s is told through it; change that first, or pause the receiver", s.Client, p.URL)}
					}
				}
			}
			if f.After = next; next == "" {
				return a.sinks.Remove(ctx, in.Body.Sink)
			}
		}
	})
}
