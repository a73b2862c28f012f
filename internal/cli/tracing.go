package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/vokter/vokter"
)

// traceFlushTimeout is how long the last spans may take to be sent when the process ends.
const traceFlushTimeout = 5 * time.Second

// startTracing makes the spans of cfg go to the OTLP receiver that the standard environment variables of
// OpenTelemetry name. It does nothing where they name none. The caller calls stop at the end.
func startTracing(ctx context.Context, cfg *vokter.Config) (stop func(), err error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return func() {}, nil
	}
	if p := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, but only http/protobuf is spoken; its usual port is 4318", p)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithService(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(&exportErrorHandler{log: cfg.Logger})
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	cfg.TracerProvider = provider
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			cfg.Logger.Warn("the last spans could not be sent", "error", err)
		}
	}, nil
}

// exportErrorHandler logs that spans cannot be sent, at most once in a minute.
type exportErrorHandler struct {
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time
}

var _ otel.ErrorHandler = (*exportErrorHandler)(nil)

// Handle logs err.
func (e *exportErrorHandler) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.logged) >= time.Minute {
		e.logged = now
		e.log.Warn("spans could not be sent to the receiver of OTEL_EXPORTER_OTLP_ENDPOINT", "error", err)
	}
}
