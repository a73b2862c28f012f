package registry

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

type sinkWithRate struct {
	perSecond float64
	burst     int
}

func (sinkWithRate) Deliver(context.Context, pipeline.Notification) error { return nil }
func (h sinkWithRate) Rate() (perSecond float64, burst int)               { return h.perSecond, h.burst }

// TestRateOf: a rate at which nothing would ever be delivered is none.
func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		sink      pipeline.Sink
		perSecond float64
		burst     int
		ok        bool
	}{
		{nil, 0, 0, false},
		{pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil }), 0, 0, false},
		{sinkWithRate{0.5, 3}, 0.5, 3, true},
		{LimitRate(sinkWithRate{0.5, 3}, 2, 4), 2, 4, true},
		{sinkWithRate{0.5, 0}, 0.5, 1, true},
		{sinkWithRate{0, 0}, 0, 0, false},
		{sinkWithRate{-1, 1}, 0, 0, false},
		{sinkWithRate{math.NaN(), 1}, 0, 0, false},
		{sinkWithRate{math.Inf(1), 1}, 0, 0, false},
	} {
		perSecond, burst, ok := RateOf(c.sink)
		if perSecond != c.perSecond || burst != c.burst || ok != c.ok {
			t.Errorf("%+v: %v, %d, %v; want %v, %d, %v", c.sink, perSecond, burst, ok, c.perSecond, c.burst, c.ok)
		}
	}
}

type sinkWithTimeout struct{ sinkWithRate }

func (sinkWithTimeout) Timeout() time.Duration { return time.Minute }
func (sinkWithTimeout) Batch() (int, int)      { return 7, 2 }

// TestLimitsOfWrappedSinks: what is given to a sink counts, and what is not stays as it was.
func TestLimitsOfWrappedSinks(t *testing.T) {
	plain := pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })
	for _, c := range []struct {
		name    string
		sink    pipeline.Sink
		timeout time.Duration
		rated   bool
		batch   int
	}{
		{"none", nil, 0, false, 1},
		{"a plain one", plain, 0, false, 1},
		{"its own", sinkWithTimeout{}, time.Minute, false, 7},
		{"another timeout", LimitTime(sinkWithTimeout{}, time.Hour), time.Hour, false, 7},
		{"another rate", LimitRate(sinkWithTimeout{}, 1, 1), time.Minute, true, 1},
		{"both", LimitTime(LimitRate(sinkWithTimeout{}, 1, 1), time.Hour), time.Hour, true, 1},
		{"both, in the other order", LimitRate(LimitTime(sinkWithTimeout{}, time.Hour), 1, 1), time.Hour, true, 1},
		{"a negative one", LimitTime(plain, -1), 0, false, 1},
	} {
		_, _, rated := RateOf(c.sink)
		batch, _ := BatchOf(c.sink)
		if timeout := TimeoutOf(c.sink); timeout != c.timeout || rated != c.rated || batch != c.batch {
			t.Errorf("%s: got %v, %v, %d; want %v, %v, %d", c.name, timeout, rated, batch, c.timeout, c.rated, c.batch)
		}
	}
}

type invalidSink struct{ sinkWithRate }

var errInvalid = errors.New("it has no target")

func (invalidSink) Validate() error { return errInvalid }

// TestLimitedSinkIsValidated: what a rate is given to is checked as without it.
func TestLimitedSinkIsValidated(t *testing.T) {
	for _, c := range []struct {
		sink pipeline.Sink
		want error
	}{{invalidSink{}, errInvalid}, {sinkWithRate{}, nil}, {LimitRate(invalidSink{}, 1, 1), errInvalid}} {
		v, ok := LimitRate(c.sink, 1, 1).(interface{ Validate() error })
		if !ok {
			t.Fatal("it cannot be validated")
		}
		if err := v.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.sink, err, c.want)
		}
	}
}

// routeSink is a route to the sinks targets.
type routeSink struct {
	sinkWithRate
	targets []string
}

func (l routeSink) Route(pipeline.Notification, time.Time) []string { return l.targets }
func (l routeSink) Targets() []string                               { return l.targets }

// channelSink is a sink of many channels, or of one if refusal is set.
type channelSink struct {
	sinkWithRate
	refusal error
}

func (p channelSink) TakesChannel() error { return p.refusal }

// TestTakeChannel: a sink of one channel is found behind routes, and routes in a circle end.
func TestTakeChannel(t *testing.T) {
	all := map[string]pipeline.Sink{
		"bot": channelSink{}, "hook": LimitRate(channelSink{refusal: errors.New("bound")}, 1, 1), "mail": sinkWithRate{},
		"good": routeSink{targets: []string{"bot", "mail"}}, "bad": routeSink{targets: []string{"good", "hook"}},
		"circle": routeSink{targets: []string{"circle"}},
	}
	for name, want := range map[string]string{
		"bot": "", "mail": "", "good": "", "circle": "", "none": "",
		"hook": `the sink "hook" cannot deliver to #legal: bound`, "bad": `the sink "hook" cannot deliver to #legal: bound`,
	} {
		got := ""
		if err := TakeChannel(all, []string{"mail", name}, "#legal"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
