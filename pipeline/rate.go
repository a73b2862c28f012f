package pipeline

import (
	"context"
	"math"
)

// LimitRate returns s with another rate: perSecond attempts a second, above 0, and at most
// burst, at least 1, at once.
func LimitRate(s Sink, perSecond float64, burst int) Sink { return limited{s, perSecond, burst} }

// RateOf returns the rate of s, with a burst of at least 1; ok is false where it has none, or
// one that is not above 0 and finite.
func RateOf(s Sink) (perSecond float64, burst int, ok bool) {
	r, ok := s.(interface{ Rate() (float64, int) })
	if !ok {
		return 0, 0, false
	}
	perSecond, burst = r.Rate()
	if !(perSecond > 0) || math.IsInf(perSecond, 1) {
		return 0, 0, false
	}
	return perSecond, max(burst, 1), true
}

// limited is a Sink with a rate.
type limited struct {
	sink      Sink
	perSecond float64
	burst     int
}

func (l limited) Deliver(ctx context.Context, n Notification) error { return l.sink.Deliver(ctx, n) }
func (l limited) Rate() (perSecond float64, burst int)              { return l.perSecond, l.burst }

// Unwrap returns the sink that l limits.
func (l limited) Unwrap() Sink { return l.sink }

// Validate returns why the sink that l limits cannot be used, where it says that.
func (l limited) Validate() error {
	if v, ok := l.sink.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}
