package sinks

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
)

// limiters hold attempts back until their sinks may be used. They live as long as the
// process: a rate is what a receiver bears, and stays when the configuration is read again,
// unless it is another one then.
type limiters struct {
	list map[string]*rate.Limiter // guarded by pool.mu
}

// reserve takes the next attempt of the sink called name. The reservation says in how long
// it may begin; nil: at once, since there is no rate.
func (l *limiters) reserve(name string, s pipeline.Sink, now time.Time) *rate.Reservation {
	perSecond, burst, ok := pipeline.RateOf(s)
	if !ok {
		return nil
	}
	lim := l.list[name]
	if lim == nil {
		if l.list == nil {
			l.list = make(map[string]*rate.Limiter)
		}
		lim = rate.NewLimiter(rate.Limit(perSecond), burst)
		l.list[name] = lim
	}
	return lim.ReserveN(now, 1)
}

// change forgets what was taken of the sinks of before that have another rate, or none, in
// now, and returns their names.
func (l *limiters) change(before, now map[string]pipeline.Sink) map[string]bool {
	changed := make(map[string]bool)
	for name, s := range before {
		wasPerSecond, wasBurst, was := pipeline.RateOf(s)
		perSecond, burst, is := pipeline.RateOf(now[name])
		if perSecond != wasPerSecond || burst != wasBurst || is != was {
			delete(l.list, name)
			changed[name] = true
		}
	}
	return changed
}
