package inspect

import "github.com/vokter/vokter/pipeline/flow"

// Gauges returns c as counters for those who watch over the process.
func (c Counts) Gauges() []flow.Gauge {
	return []flow.Gauge{
		counter("vokter_checks_total", "Checks of pages.", c.Checks),
		counter("vokter_checks_unchanged_total", "Checks that found nothing new.", c.Unchanged),
		counter("vokter_checks_failed_total", "Checks that failed.", c.Failed),
		counter("vokter_versions_total", "Versions of documents that were found.", c.Versions),
		counter("vokter_changes_total", "Changes between two versions.", c.Changes),
		counter("vokter_notifications_total", "Notifications that changes made.", c.Notifications),
		counter("vokter_deliveries_total", "Notifications that were delivered.", c.Delivered),
		counter("vokter_dead_letters_total", "Notifications that were given up.", c.Dead),
		counter("vokter_unhandled_messages_total", "Messages that could not be handled, such as pages that were pushed and cannot be read.", c.Unhandled),
		counter("vokter_pushed_total", "Pages that were pushed and read.", c.Pushed),
		counter("vokter_pushed_unwatched_total", "Pages that were pushed and dropped, since nobody watches them.", c.Unwatched),
		counter("vokter_pushed_repeated_total", "Pages that were pushed and dropped, since they came again under the same ID.", c.Repeated),
	}
}

func counter(name, help string, n int) flow.Gauge {
	return flow.Gauge{Name: name, Help: help, Value: float64(n)}
}
