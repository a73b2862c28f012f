package index

import (
	"cmp"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// noWake takes a wake back.
var noWake time.Time

// checked tells of a check of page, which is p now.
func (s *Stage) checked(page string, p Page, c Checked) {
	s.run.done(page)
	ob := flow.Observation{Kind: flow.KindCheck, Page: page, URL: page, Time: c.Time}
	if len(p.Documents) == 1 {
		ob.Document = p.Documents[0].ID
	}
	s.cfg.Observe.Note(ob)
	switch {
	case c.Class != "":
		ob.Kind, ob.Text = flow.KindFailed, cmp.Or(c.Reason, c.Class)
		s.cfg.Observe.Note(ob)
	case c.Unchanged:
		ob.Kind = flow.KindUnchanged
		s.cfg.Observe.Note(ob)
	}
	// A trouble that goes on is told once.
	switch c.Class {
	case c.Before:
	case "":
		s.cfg.Logger.Info("check succeeded again", "page", page)
	default:
		s.cfg.Logger.Warn("check failed", "page", page, "class", c.Class, "reason", c.Reason)
	}
}

// ended tells that a life of page is over.
func (s *Stage) ended(page string, e Ended) {
	ob := flow.Observation{Kind: flow.KindEnded, Page: page, URL: page, Time: s.cfg.Now()}
	if e.Expiry != nil {
		ob.Time, ob.Text = e.Expiry.Time, "expired: "+e.Expiry.Class
		s.cfg.Logger.Warn("page expired", "page", page, "failures", e.Expiry.Failures, "class", e.Expiry.Class, "reason", e.Expiry.Reason)
	}
	s.cfg.Observe.Note(ob)
}

// held tells that a page is left alone for the rest of a limited run.
func (s *Stage) held(page string, p Page) {
	if !s.run.hold(page) {
		return
	}
	reason := "the host asked to be left alone until " + p.NotBefore.UTC().Format(time.RFC3339)
	s.cfg.Logger.Warn("page is not checked any more in this run", "page", page, "reason", reason)
	s.cfg.Observe.Note(flow.Observation{Kind: flow.KindHeld, Page: page, URL: page, Time: s.cfg.Now(), Text: reason})
}
