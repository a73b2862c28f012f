package delivery

import (
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// typeNudge is the type of the messages that say that another receiver at the same host took a notification.
const typeNudge = "vokter.delivery.nudge.v1"

// handleNudge makes the next attempt at a failing receiver early.
func (d *Delivery) handleNudge(tx flow.Tx, m flow.Message) error {
	w, err := d.openReceiver(tx, m.Key)
	if err != nil {
		return err
	}
	return w.applyAndStore(nudged{At: w.now})
}

// nudgeHost nudges the receivers that fail at the host of sink, which took a notification: once in broughtForward,
// since an attempt is not made earlier anyway. s are the settings of that attempt.
func (p *pool) nudgeHost(s *settings, sink string) {
	host := registry.HostOf(p.cfg.sink(s, sink))
	if host == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.failing) == 0 || now.Sub(p.nudgedAt[host]) < broughtForward {
		return
	}
	var nudges []string
	for receiver := range p.failing {
		if receiver != sink && registry.HostOf(p.cfg.sink(s, receiver)) == host {
			nudges = append(nudges, receiver)
		}
	}
	if len(nudges) == 0 {
		return
	}
	if p.nudgedAt == nil {
		p.nudgedAt = make(map[string]time.Time)
	}
	p.nudgedAt[host] = now
	p.wg.Add(1)
	p.workers.Go(func() {
		defer p.wg.Done()
		for _, receiver := range nudges {
			m := flow.Message{
				ID:    flow.DeriveID("nudge", receiver, now.UTC().Format(time.RFC3339Nano)),
				Topic: flow.TopicNotifications, Key: receiver, Type: typeNudge, Time: now,
			}
			if err := p.cfg.Poster.Post(p.ctx, m); err != nil {
				p.cfg.Logger.Debug("a receiver is tried when it is due, not early", "sink", receiver, "err", err)
			}
		}
	})
}
