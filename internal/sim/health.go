package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// healthGroup does what the Router does with health events: it tells the owners of pages
// of receivers that were given up, or that answer again after that.
func (w *world) healthGroup() pipeline.Processor {
	return pipeline.ProcessorFunc(func(_ context.Context, tx pipeline.Tx, m pipeline.Message) error {
		e, err := pipeline.HealthFrom(m)
		if err != nil || e.Receiver == nil {
			return err
		}
		for _, s := range w.sites {
			var kind string
			var body any
			switch {
			case e.Event == pipeline.HealthReceiverExpired:
				kind, body = pipeline.TypeExpire, pipeline.ExpireCommand{URL: s.url, Receiver: e.Receiver.ID(), Reason: e.Reason}
			case e.Event == pipeline.HealthReceiverRecovered && e.Expired:
				kind, body = pipeline.TypeResume, pipeline.ResumeCommand{URL: s.url, Receiver: e.Receiver.ID()}
			default:
				continue
			}
			b, err := json.Marshal(body)
			if err != nil {
				return err
			}
			tx.Emit(pipeline.Message{
				ID: pipeline.DeriveID("command", e.ID, s.url), Topic: pipeline.TopicDocuments, Key: s.url,
				Type: kind, Subject: s.url, Time: w.now, Body: b,
			})
		}
		return nil
	})
}

// forgotten is after how long delivery may forget a receiver, and number its attempts anew.
const forgotten = 7 * 24 * time.Hour

// verifyHealth checks that no event was told twice under one ID, but for the refusals of a
// command that was sent twice. That each is told when it
// must be, and only then, is held against the truth of its page and the book of its receiver.
func (w *world) verifyHealth() error {
	seen := make(map[string]time.Time)
	for _, lane := range w.t.log(pipeline.TopicHealth) {
		for _, m := range lane {
			e, err := pipeline.HealthFrom(m)
			if err != nil {
				return err
			}
			if e.Event == pipeline.HealthRefused {
				continue
			}
			if at, ok := seen[m.ID]; ok && m.Time.Sub(at) < forgotten {
				return fmt.Errorf("health event %s was told twice", m.ID)
			}
			seen[m.ID] = m.Time
		}
	}
	return nil
}
