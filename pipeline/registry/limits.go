package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// LimitRate returns s with another rate: perSecond attempts a second, above 0, and at most
// burst, at least 1, at once.
func LimitRate(s pipeline.Sink, perSecond float64, burst int) pipeline.Sink {
	return rateLimitedSink{wrappedSink{s}, perSecond, burst}
}

// LimitTime returns s with another timeout: an attempt ends after d, which must be above 0.
func LimitTime(s pipeline.Sink, d time.Duration) pipeline.Sink { return timeoutSink{wrappedSink{s}, d} }

// RateOf returns the rate of s, with a burst of at least 1; ok is false where it has none, or
// one that is not above 0 and finite.
func RateOf(s pipeline.Sink) (perSecond float64, burst int, ok bool) {
	r, ok := findWrapped[interface{ Rate() (float64, int) }](s)
	if !ok {
		return 0, 0, false
	}
	perSecond, burst = r.Rate()
	if !(perSecond > 0) || math.IsInf(perSecond, 1) {
		return 0, 0, false
	}
	return perSecond, max(burst, 1), true
}

// BatchOf returns how many notifications an attempt of s may deliver, and how many of them at
// the same time. Both are 1 where s has no method Batch, and where s has a rate, because a rate
// counts attempts.
func BatchOf(s pipeline.Sink) (notifications, atOnce int) {
	b, ok := findWrapped[interface{ Batch() (int, int) }](s)
	if !ok {
		return 1, 1
	}
	if _, _, limited := RateOf(s); limited {
		return 1, 1
	}
	notifications, atOnce = b.Batch()
	return max(notifications, 1), max(atOnce, 1)
}

// TimeoutOf returns how long an attempt of s may take, or 0 if s does not say.
func TimeoutOf(s pipeline.Sink) time.Duration {
	if t, ok := findWrapped[interface{ Timeout() time.Duration }](s); ok {
		return max(t.Timeout(), 0)
	}
	return 0
}

// HostOf returns the host, with its port, that s sends to. It is empty where s has no method Host.
func HostOf(s pipeline.Sink) string {
	if h, ok := findWrapped[interface{ Host() string }](s); ok {
		return h.Host()
	}
	return ""
}

// TakesChanges returns nil if s, or a sink that it wraps, delivers change records as it is
// configured, and otherwise why not.
func TakesChanges(s pipeline.Sink) error {
	c, ok := findWrapped[pipeline.ChangeSink](s)
	if !ok {
		return errors.New("its kind takes no change records, which are for programs; name a kafka or a webhook sink")
	}
	return c.TakesChanges()
}

// TakeChannel returns why a subscription to the sinks named names cannot name channel, or nil: one of
// the sinks, or one to which a route among them leads, has a channel that cannot be replaced. all are
// the sinks that there are.
func TakeChannel(all map[string]pipeline.Sink, names []string, channel string) error {
	return takeChannelWithin(all, names, channel, len(all))
}

// takeChannelWithin is TakeChannel, but follows at most so many routes behind each other (most).
func takeChannelWithin(all map[string]pipeline.Sink, names []string, channel string, most int) error {
	for _, name := range names {
		if c, ok := findWrapped[pipeline.ChannelSink](all[name]); ok {
			if err := c.TakesChannel(); err != nil {
				return fmt.Errorf("the sink %q cannot deliver to %s: %w", name, channel, err)
			}
		}
		if route, ok := RouteOf(all[name]); ok && most > 0 {
			if err := takeChannelWithin(all, route.Targets(), channel, most-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// RouteOf returns s, or the first of the sinks that it wraps, that is a RoutingSink; ok is false
// where none is.
func RouteOf(s pipeline.Sink) (r pipeline.RoutingSink, ok bool) {
	return findWrapped[pipeline.RoutingSink](s)
}

// CheckerOf returns s, or the first of the sinks that it wraps, that is a Checker; ok is false
// where none is.
func CheckerOf(s pipeline.Sink) (c pipeline.Checker, ok bool) {
	return findWrapped[pipeline.Checker](s)
}

// CloserOf returns s, or the first of the sinks that it wraps, that is an io.Closer; ok is false where
// none is.
func CloserOf(s pipeline.Sink) (c io.Closer, ok bool) { return findWrapped[io.Closer](s) }

// findWrapped returns s, or the first of the sinks that it wraps, that is a T.
func findWrapped[T any](s pipeline.Sink) (found T, ok bool) {
	for s != nil {
		if found, ok = s.(T); ok {
			return found, true
		}
		w, wraps := s.(interface{ Unwrap() pipeline.Sink })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return found, false
}

// wrappedSink is a Sink that has other limits than the sink that it wraps.
type wrappedSink struct{ sink pipeline.Sink }

func (w wrappedSink) Deliver(ctx context.Context, n pipeline.Notification) error {
	return w.sink.Deliver(ctx, n)
}

// Unwrap returns the sink with the limits of its own.
func (w wrappedSink) Unwrap() pipeline.Sink { return w.sink }

// Validate calls the Validate method of the sink, if it has one.
func (w wrappedSink) Validate() error {
	if v, ok := w.sink.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

type rateLimitedSink struct {
	wrappedSink
	perSecond float64
	burst     int
}

func (r rateLimitedSink) Rate() (perSecond float64, burst int) { return r.perSecond, r.burst }

type timeoutSink struct {
	wrappedSink
	timeout time.Duration
}

func (t timeoutSink) Timeout() time.Duration { return t.timeout }
