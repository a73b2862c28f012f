package pipeline

import (
	"context"
	"errors"
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

type invalid struct{ hasty }

var errInvalid = errors.New("it has no target")

func (invalid) Validate() error { return errInvalid }

// TestLimitedSinkIsValidated: what a rate is given to is checked as without it.
func TestLimitedSinkIsValidated(t *testing.T) {
	for _, c := range []struct {
		sink Sink
		want error
	}{{invalid{}, errInvalid}, {hasty{}, nil}, {LimitRate(invalid{}, 1, 1), errInvalid}} {
		v, ok := LimitRate(c.sink, 1, 1).(interface{ Validate() error })
		if !ok {
			t.Fatal("it cannot be validated")
		}
		if err := v.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.sink, err, c.want)
		}
	}
}
