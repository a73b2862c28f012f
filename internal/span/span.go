// Package span records what the stages do as spans of OpenTelemetry. The W3C trace context travels
// in the header of the messages, so that one trace reaches from a check to the deliveries.
package span

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/vokter/vokter/pipeline/flow"
)

// Tracer starts spans. The zero Tracer records nothing and costs nothing.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer that records to p. Where p is nil, it records nothing.
func New(p trace.TracerProvider) Tracer {
	if p == nil {
		return Tracer{}
	}
	return Tracer{p.Tracer("github.com/vokter/vokter")}
}

// On reports whether the Tracer records spans.
func (t Tracer) On() bool { return t.tracer != nil }

// Start starts a span below parent, a W3C trace context. With an empty or invalid parent a new
// trace begins. It returns a context with the span and the trace context for messages that follow
// from it. The caller calls end with the error that the work ended with, or nil.
func (t Tracer) Start(ctx context.Context, name, parent string, attributes ...attribute.KeyValue) (_ context.Context, header string, end func(error)) {
	if t.tracer == nil {
		return ctx, parent, func(error) {}
	}
	var w3c propagation.TraceContext
	ctx = w3c.Extract(ctx, propagation.MapCarrier{flow.HeaderTrace: parent})
	ctx, s := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return ctx, carrier[flow.HeaderTrace], func(err error) {
		if err != nil {
			s.SetStatus(codes.Error, flow.Clipped(err.Error(), 400))
		}
		s.End()
	}
}
