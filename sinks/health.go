package sinks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// about names the notification id in this life of the receiver, between the times when it
// was forgotten: attempts are numbered anew in each.
func (w *work) about(id string) string {
	return w.key + " " + w.q.Since.Format(time.RFC3339Nano) + " " + id
}

// tell emits a health event.
func (w *work) tell(t tell) error {
	p, err := w.st.pending(t.Seq)
	if err != nil {
		return err
	}
	n := p.Addressed.Notification
	h := pipeline.Health{
		ID:    flow.HealthID(t.Event, w.about(n.ID), w.q.Attempt),
		Event: t.Event, Time: w.now, Receiver: &p.Addressed.Receiver,
		Reason: t.Reason, Since: t.Since, Count: t.Count, Expired: t.Expired,
	}
	if t.Event == pipeline.HealthDeadLetter {
		h.URL = n.URL
	}
	w.tx.Emit(flow.HealthMessage(h))
	return nil
}

// expirePage tells the owner of a page that the receiver of n is expired. All pages of
// the receiver are told when it expires; this reaches those that were subscribed then.
func (w *work) expirePage(n pipeline.Notification) {
	page, err := pipeline.CanonicalURL(n.URL)
	if err != nil || n.Type == pipeline.NotificationTypeHealth || w.expired[page] {
		return
	}
	if w.expired == nil {
		w.expired = make(map[string]bool)
	}
	w.expired[page] = true
	body, err := json.Marshal(flow.ExpireCommand{URL: page, Receiver: w.key, Reason: w.q.ExpiredReason})
	if err != nil {
		panic(fmt.Sprintf("sinks: expire: %v", err)) // every field is encodable
	}
	w.tx.Emit(flow.Message{
		ID:    flow.DeriveID("expire", w.about(n.ID), strconv.FormatUint(w.q.Attempt, 10)),
		Topic: flow.TopicDocuments, Key: page, Type: flow.TypeExpire, Subject: page, Time: w.now,
		Header: map[string]string{"content-type": "application/json"}, Body: body,
	})
}
