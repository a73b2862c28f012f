// Package inbox is the sink that sends nothing. What it is told stands on the web page and in its feed. A process with a
// listener has one with the name inbox, so that a page can be watched without any other receiver.
package inbox

import (
	"context"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Inbox is the sink.
type Inbox struct{}

// Deliver sends nothing: the record of the notification, which the pipeline keeps, is what people look at.
func (Inbox) Deliver(ctx context.Context, _ pipeline.Notification) error { return ctx.Err() }

// Config has no settings.
type Config struct{}

// Register makes the kind inbox known to r.
func Register(r *registry.Registry) {
	registry.AddSink(r, "inbox", func(Config, registry.Env) (Inbox, error) { return Inbox{}, nil })
}

var _ pipeline.Sink = Inbox{}
