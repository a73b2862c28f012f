package vokter

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// Observe calls o with what the stages of this process do, after the commit, until the returned
// function is called. It is called from many goroutines and must not block. Calls that have begun
// may end after that. A crash loses observations.
func (r *Router) Observe(o flow.Observer) (stop func()) { return r.observers.add(o) }

// recordObservation counts ob and passes it on.
func (r *Router) recordObservation(ob flow.Observation) {
	r.tally.Note(ob)
	r.meter.Note(ob)
	r.recent.Note(ob)
	if all := r.observers.all.Load(); all != nil {
		for _, o := range *all {
			o.Note(ob)
		}
	}
}

// observers is a set of observers that is read without a lock.
type observers struct {
	mu    sync.Mutex
	byKey map[*byte]flow.Observer
	all   atomic.Pointer[[]flow.Observer]
}

func (s *observers) add(o flow.Observer) (remove func()) {
	key := new(byte)
	s.update(func() { s.byKey[key] = o })
	return func() { s.update(func() { delete(s.byKey, key) }) }
}

func (s *observers) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = make(map[*byte]flow.Observer)
	}
	f()
	all := slices.Collect(maps.Values(s.byKey))
	s.all.Store(&all)
}

// sinkNames returns the names of the configured sinks in order.
func (r *Router) sinkNames() []string { return slices.Sorted(maps.Keys(r.liveConfig.Load().Sinks)) }

// Gauges returns the metrics of the Router and its transport, which docs/metrics.md describes. It
// returns at once, also before and after Run. A metric whose value is not known yet is left out.
func (r *Router) Gauges() []flow.Gauge {
	ready := 0.0
	if r.Ready() == nil {
		ready = 1
	}
	all := append([]flow.Gauge{
		{Name: "vokter_ready", Help: "1 while the pipeline is at work, and otherwise 0; /readyz says why.", Value: ready},
	}, r.tally.Counts().Gauges()...)
	all = append(all, r.meter.Gauges()...)
	all = append(all, flow.Gauge{Name: "vokter_rejected_messages", Help: "Messages that a Watermill middleware rejects again and again, so that what follows them waits.", Value: float64(r.rejected.count())})
	if took := r.startTook.Load(); took > 0 {
		all = append(all, flow.Gauge{Name: "vokter_start_seconds", Help: "How long the process took from its start until the pipeline was at work, in seconds.", Value: time.Duration(took).Seconds()})
	}
	select {
	case <-r.running:
		for _, f := range r.cfg.Fetchers {
			if g, ok := f.(interface{ Gauges() []flow.Gauge }); ok {
				all = append(all, g.Gauges()...)
			}
		}
		due, parked := r.stages.delivery.Backlog(0)
		stuck, _ := r.readers.Stuck()
		all = append(all,
			flow.Gauge{Name: "vokter_stuck_reads", Help: "Readings of pages that go on after their time.", Value: float64(stuck)},
			flow.Gauge{Name: "vokter_versions_shed_total", Help: "Versions that were dropped early because the data directory takes more of the disk than retention.disk allows.", Value: float64(r.stages.index.Shedded())},
			flow.Gauge{Name: "vokter_overdue_pages", Help: "Pages that are checked too late, or were in the last minute.", Value: float64(r.stages.index.Late())},
			flow.Gauge{Name: "vokter_pending_notifications", Help: "Notifications that are still to be delivered.", Value: float64(due + parked)},
			flow.Gauge{Name: "vokter_oldest_pending_seconds", Help: "Time since the first attempt to deliver the notification that is tried for longest, in seconds; 0 if none is.", Value: r.stages.delivery.Oldest().Seconds()})
		return append(all, r.transport.Gauges()...)
	default:
		if given := r.cfg.Transport; given != nil { // the embedded transport is opened by Run and may not exist yet
			all = append(all, given.Gauges()...)
		}
		return all
	}
}
