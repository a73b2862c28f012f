package pipeline

import (
	"context"
	"math"
	"testing"
)

type hasty struct {
	perSecond float64
	burst     int
}

func (hasty) Deliver(context.Context, Notification) error { return nil }
func (h hasty) Rate() (perSecond float64, burst int)      { return h.perSecond, h.burst }

// TestRateOf: a rate at which nothing would ever be delivered is none.
func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		sink      Sink
		perSecond float64
		burst     int
		ok        bool
	}{
		{nil, 0, 0, false},
		{SinkFunc(func(context.Context, Notification) error { return nil }), 0, 0, false},
		{hasty{0.5, 3}, 0.5, 3, true},
		{LimitRate(hasty{0.5, 3}, 2, 4), 2, 4, true},
		{hasty{0.5, 0}, 0.5, 1, true},
		{hasty{0, 0}, 0, 0, false},
		{hasty{-1, 1}, 0, 0, false},
		{hasty{math.NaN(), 1}, 0, 0, false},
		{hasty{math.Inf(1), 1}, 0, 0, false},
	} {
		perSecond, burst, ok := RateOf(c.sink)
		if perSecond != c.perSecond || burst != c.burst || ok != c.ok {
			t.Errorf("%+v: %v, %d, %v; want %v, %d, %v", c.sink, perSecond, burst, ok, c.perSecond, c.burst, c.ok)
		}
	}
}
