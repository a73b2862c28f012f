package index

import (
	"time"

	"github.com/vokter/vokter/pipeline"
)

// health tells what the check of o changed: about the page, or about h.Document.
func (a *application) health(o pipeline.Outcome, h pipeline.Health) {
	about := a.p.Incarnation
	if h.Document != "" {
		about += "/" + h.Document
	}
	h.ID = pipeline.HealthID(h.Event, about, a.p.number(o))
	h.URL, h.Time = a.p.URL, a.at(o)
	a.emit(Health{h})
}

// at is when the check of o was made.
func (a *application) at(o pipeline.Outcome) time.Time {
	if o.Time.IsZero() {
		return a.Now
	}
	return o.Time
}

// missed notes that d is not on its page.
func (a *application) missed(d *Document, o pipeline.Outcome, class, reason string) {
	if !d.GoneSince.IsZero() {
		return
	}
	d.GoneSince = a.at(o)
	a.health(o, pipeline.Health{Event: pipeline.HealthSelectorGone, Document: d.ID, Class: class, Reason: reason, Since: d.GoneSince})
}

// found notes that d is on its page.
func (a *application) found(d *Document, o pipeline.Outcome) {
	if d.GoneSince.IsZero() {
		return
	}
	a.health(o, pipeline.Health{Event: pipeline.HealthRecovered, Document: d.ID, Since: d.GoneSince})
	d.GoneSince = time.Time{}
}
