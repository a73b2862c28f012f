package index

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// health tells what the check of o changed: about the page, or about h.Document.
func (a *application) health(o flow.Outcome, h pipeline.Health) {
	about := a.p.Incarnation
	if h.Document != "" {
		about += "/" + h.Document
	}
	h.ID = flow.HealthID(h.Event, about, a.p.number(o))
	h.URL, h.Time = a.p.URL, a.at(o)
	a.emit(Health{h})
}

// at is when the check of o was made.
func (a *application) at(o flow.Outcome) time.Time {
	if o.Time.IsZero() {
		return a.Now
	}
	return o.Time
}

// missed notes that d is not on its page.
func (a *application) missed(d *Document, o flow.Outcome, class, reason string) {
	if !d.GoneSince.IsZero() {
		return
	}
	d.GoneSince = a.at(o)
	a.health(o, pipeline.Health{Event: pipeline.HealthSelectorGone, Document: d.ID, Class: class, Reason: reason, Since: d.GoneSince})
}

// found notes that d is on its page.
func (a *application) found(d *Document, o flow.Outcome) {
	if d.GoneSince.IsZero() {
		return
	}
	a.health(o, pipeline.Health{Event: pipeline.HealthRecovered, Document: d.ID, Since: d.GoneSince})
	d.GoneSince = time.Time{}
}
