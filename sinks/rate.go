package sinks

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/pipeline"
)

// limiters hold attempts back until their sinks may be used. They live as long as the
// process: a rate is what a receiver bears, and stays when the configuration is read again.
type limiters struct {
	mu   sync.Mutex
	list map[string]*rate.Limiter
}

// reserve takes the next attempt of the sink called name, and says in how long it may
// begin.
func (l *limiters) reserve(name string, s pipeline.Sink, now time.Time) time.Duration {
	perSecond, burst, ok := pipeline.RateOf(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok {
		delete(l.list, name)
		return 0
	}
	lim := l.list[name]
	if lim == nil {
		if l.list == nil {
			l.list = make(map[string]*rate.Limiter)
		}
		lim = rate.NewLimiter(rate.Limit(perSecond), burst)
		l.list[name] = lim
	}
	lim.SetLimitAt(now, rate.Limit(perSecond))
	lim.SetBurstAt(now, burst)
	return lim.ReserveN(now, 1).DelayFrom(now)
}
