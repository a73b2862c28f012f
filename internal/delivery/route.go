package delivery

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// applySettings takes from the settings s how the receiver gets its notifications.
func (w *unitOfWork) applySettings(s *settings) {
	w.policy = s.policy
	w.receiving = s.policy.Receivers[w.key]
	w.policy.paused = w.receiving.Paused
	if route, ok := registry.RouteOf(w.d.cfg.sink(s, w.key)); ok {
		w.route = route
		w.policy.pass = passPolicy{isRoute: true}
		return
	}
	if to := w.receiving.Fallback; to != "" {
		w.policy.pass = passPolicy{hasFallback: true, fallbackAfter: w.receiving.FallbackAfter}
	}
}

// passTargets returns the sinks that notifications of the receiver may be passed on to.
func (w *unitOfWork) passTargets() []string {
	switch {
	case w.route != nil:
		return w.route.Targets()
	case w.receiving.Fallback != "":
		return []string{w.receiving.Fallback}
	}
	return nil
}

// passToSinks passes a pending notification on to other sinks, in this transaction: it is in their queues
// or still in this one, but never in both and never in none.
func (w *unitOfWork) passToSinks(act passToSinks) error {
	p, err := w.st.pending(act.Seq)
	if err != nil {
		return err
	}
	a := p.Addressed
	to := []string{w.receiving.Fallback}
	if w.route != nil {
		to = w.route.Route(a.Notification, w.now)
	} else {
		a.Digest = nil // it was collected, or was due at once
	}
	var names []string
	for _, sink := range to {
		passed := a.To(sink)
		m, err := passed.Message()
		if err != nil {
			return err
		}
		m.Trace = p.Trace
		if p.Replayed {
			m.Header[flow.HeaderReplay] = "1"
		}
		w.tx.Emit(m)
		names = append(names, sink, passed.Notification.ID)
	}
	if len(to) == 0 {
		w.observe(flow.KindDropped, a, "no rule of the route leads to a sink")
	}
	r := Record{State: RecordPassed, Attempts: act.Attempts, Time: w.now, passedTo: strings.Join(names, " ")}
	return errors.Join(w.st.Delete(pendingName(act.Seq)), w.st.setEnded(a.Notification.ID, r))
}

// groupWindowName returns the name of the window of a group. It is no incarnation of a subscription.
func groupWindowName(key []string) string {
	return "group-" + flow.DeriveID(append([]string{"group"}, key...)...)
}

// dropWithdrawnItems drops the items of a group whose subscriptions were cancelled. It returns the others.
func (w *unitOfWork) dropWithdrawnItems(items []pendingRecord) ([]pendingRecord, error) {
	if !w.hasMarkers {
		return items, nil
	}
	kept := items[:0]
	for _, p := range items {
		withdrawn, err := w.st.isWithdrawn(p.Addressed.Subscription)
		if err != nil {
			return nil, err
		}
		if !withdrawn {
			kept = append(kept, p)
			continue
		}
		w.observe(flow.KindDropped, p.Addressed, "")
		if err := w.st.setEnded(p.Addressed.Notification.ID, Record{State: RecordDropped, Time: w.now}); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// newGroupDigest makes one notification of the items of a group that began at start. A group of one is the
// notification itself.
func newGroupDigest(name string, start time.Time, items []pendingRecord) pendingRecord {
	if len(items) == 1 {
		return items[0]
	}
	digest := newDigest(start, items)
	first := items[0].Addressed
	n := &digest.Addressed.Notification
	n.ID = flow.DeriveID("group", name, start.UTC().Format(time.RFC3339Nano), first.Notification.ID, items[len(items)-1].Addressed.Notification.ID)
	severities := pipeline.Severities()
	n.Tags = nil
	for i, p := range items {
		of := p.Addressed.Notification
		for _, tag := range of.Tags {
			if !slices.Contains(n.Tags, tag) {
				n.Tags = append(n.Tags, tag)
			}
		}
		n.Items[i].URL, n.Items[i].Client, n.Items[i].Severity = of.URL, of.Client, of.Severity
		if slices.Index(severities, of.Severity) > slices.Index(severities, n.Severity) {
			n.Severity = of.Severity
		}
		if of.Client != first.Notification.Client {
			n.Client = ""
		}
		if of.URL != first.Notification.URL {
			n.URL, n.Version, n.Title, n.Language, n.ContentType = "", 0, "", "", ""
		}
		if p.Addressed.Subscription != first.Subscription {
			digest.Addressed.Subscription = ""
		}
		if p.Addressed.Document != first.Document {
			digest.Addressed.Document = ""
		}
	}
	return digest
}
