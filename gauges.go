package vokter

import (
	"github.com/vokter/vokter/pipeline/flow"
)

// Gauges returns how the Router does: those below, and those of its Transport. It returns at once, also before Run and after it. What it does not
// know yet is left out.
func (r *Router) Gauges() []flow.Gauge {
	n := r.tally.counts()
	ready := 0.0
	if r.Ready() == nil {
		ready = 1
	}
	all := []flow.Gauge{
		{Name: "vokter_ready", Help: "1 while the pipeline is at work, and otherwise 0; /readyz says why.", Value: ready},
		counter("vokter_checks_total", "Checks of pages.", n.Checks),
		counter("vokter_checks_unchanged_total", "Checks that found nothing new.", n.Unchanged),
		counter("vokter_checks_failed_total", "Checks that failed.", n.Failed),
		counter("vokter_versions_total", "Versions of documents that were found.", n.Versions),
		counter("vokter_changes_total", "Changes between two versions.", n.Changes),
		counter("vokter_notifications_total", "Notifications that changes made.", n.Notifications),
		counter("vokter_deliveries_total", "Notifications that were delivered.", n.Delivered),
		counter("vokter_dead_letters_total", "Notifications that were given up.", n.Dead),
		counter("vokter_unhandled_messages_total", "Messages that could not be handled, such as pages that were pushed and cannot be read.", n.Unhandled),
		counter("vokter_pushed_total", "Pages that were pushed and read.", n.Pushed),
		counter("vokter_pushed_unwatched_total", "Pages that were pushed and dropped, since nobody watches them.", n.Unwatched),
		counter("vokter_pushed_repeated_total", "Pages that were pushed and dropped, since they came again under the same ID.", n.Repeated),
	}
	select {
	case <-r.running:
		due, parked := r.stages.delivery.Backlog(0)
		all = append(all,
			flow.Gauge{Name: "vokter_overdue_pages", Help: "Pages that are checked too late, or were in the last minute.", Value: float64(r.stages.index.Late())},
			flow.Gauge{Name: "vokter_pending_notifications", Help: "Notifications that are still to be delivered.", Value: float64(due + parked)})
		return append(all, r.transport.Gauges()...)
	default:
		if given := r.cfg.Transport; given != nil { // Run opens its own meanwhile
			all = append(all, given.Gauges()...)
		}
		return all
	}
}

func counter(name, help string, n int) flow.Gauge {
	return flow.Gauge{Name: name, Help: help, Value: float64(n)}
}
