package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// typeSweep asks the owner of each lane to tell all pages in it of a receiver. Its body is
// the event about that.
const typeSweep = "sim.sweep.v1"

// healthProcessor does what the Router does with health events: it tells the owners of pages
// of receivers that were given up, or that answer again after that.
func (w *world) healthProcessor() flow.Processor {
	return flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type == typeSweep {
			return w.sweepLane(tx, m)
		}
		e, err := flow.HealthFrom(m)
		if err != nil || e.Receiver == nil {
			return err
		}
		if e.Event == pipeline.HealthReceiverExpired || e.Event == pipeline.HealthReceiverRecovered && e.Expired {
			tx.EmitAll(flow.Message{
				ID: flow.DeriveID("sweep", e.ID), Topic: flow.TopicHealth, Type: typeSweep, Time: w.now, Body: m.Body,
			})
		}
		return nil
	})
}

// sweepLane tells all pages of a lane of the receiver that m is about.
func (w *world) sweepLane(tx flow.Tx, m flow.Message) error {
	var e pipeline.Health
	if err := json.Unmarshal(m.Body, &e); err != nil {
		return err
	}
	for page := range tx.Neighbours(flow.GroupIndex) {
		var kind string
		var body any
		if e.Event == pipeline.HealthReceiverExpired {
			kind, body = flow.TypeExpire, flow.ExpireCommand{URL: page, Receiver: e.Receiver.Sink, Reason: e.Reason}
		} else {
			kind, body = flow.TypeResume, flow.ResumeCommand{URL: page, Receiver: e.Receiver.Sink}
		}
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		tx.Emit(flow.Message{
			ID: flow.DeriveID("command", e.ID, page), Topic: flow.TopicDocuments, Key: page,
			Type: kind, Subject: page, Time: w.now, Body: b,
		})
	}
	return nil
}

// receiverForgottenAfter is after how long delivery may forget a receiver, and number its attempts anew.
const receiverForgottenAfter = 7 * 24 * time.Hour

// verifyHealth checks that no event was told twice under one ID, but for the refusals of a
// command that was sent twice. That each is told when it
// must be, and only then, is compared with the models of its page and its receiver.
func (w *world) verifyHealth() error {
	seen := make(map[string]time.Time)
	for _, lane := range w.transport.log(flow.TopicHealth) {
		for _, m := range lane {
			if m.Type != flow.TypeHealth {
				continue
			}
			e, err := flow.HealthFrom(m)
			if err != nil {
				return err
			}
			if e.Event == pipeline.HealthRefused {
				continue
			}
			if at, ok := seen[m.ID]; ok && m.Time.Sub(at) < receiverForgottenAfter {
				return fmt.Errorf("health event %s was told twice", m.ID)
			}
			seen[m.ID] = m.Time
		}
	}
	return nil
}
