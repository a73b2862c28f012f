package sim

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
)

// indexEntry is one message or wake that index handled, and what it asked for and told.
type indexEntry struct {
	step, tenure int
	now          time.Time
	message      flow.Message
	requests     []flow.Request
	snapshots    []flow.Snapshot
	ended        []flow.Ended
	outages      int
	withdrawn    []flow.Withdraw
	health       []pipeline.Health
	follows      map[string]string // tree and page: what the page was told
	// openCheck is the number of the check that is outstanding after a wake, 0 for none.
	openCheck uint64
	// droppedBefore says that index handled an earlier message of the page and dropped it.
	droppedBefore bool
}

// recordHandled remembers what the groups did, until that is taken back.
func (w *world) recordHandled(h workItem, x *tx) error {
	for _, x := range x.all() {
		var err error
		switch x.consumer.Group {
		case flow.GroupIndex:
			err = w.recordIndex(h, x)
		case flow.GroupMatch:
			err = w.recordMatch(x.emitted)
		case flow.GroupDelivery:
			err = w.recordDelivery(h, x, x.emitted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordIndex remembers what index did.
func (w *world) recordIndex(h workItem, x *tx) error {
	if err := w.verifyWake(h, x); err != nil {
		return err
	}
	e := indexEntry{step: w.steps, tenure: h.l.tenure, now: w.now, message: h.message, follows: make(map[string]string)}
	e.droppedBefore = w.droppedPages[h.message.Key]
	if h.kind == engine.FromWake {
		p, err := index.Load(engine.View(h.l.state, x.place()))
		if err != nil {
			return err
		}
		if p.Open != nil {
			e.openCheck = p.Check
		}
	}
	for _, m := range x.emitted {
		var err error
		switch m.Type {
		case flow.TypeRequest:
			err = appendBody(m, &e.requests)
		case flow.TypeOutage:
			e.outages++
		case flow.TypeEnded:
			err = appendBody(m, &e.ended)
		case flow.TypeWithdraw:
			err = appendBody(m, &e.withdrawn)
		case flow.TypeHealth:
			err = appendBody(m, &e.health)
		case flow.TypeFollow:
			err = e.collectFollow(m)
		case flow.TypeSnapshot:
			var s flow.Snapshot
			if s, err = flow.SnapshotFrom(m); err == nil {
				err = s.Unpack()
			}
			e.snapshots = append(e.snapshots, s)
		}
		if err != nil {
			return err
		}
	}
	page := h.message.Key
	if s := w.siteByURL(page); w.faultsOver && s != nil {
		for _, r := range e.requests {
			s.finalChecks[checkID(r)] = false
		}
	}
	if w.roundTrip != nil && w.roundTrip.site.url == page && len(e.snapshots) > 0 {
		w.roundTrip.changeSeen = true
	}
	l := h.l
	l.entries[page] = append(l.entries[page], e)
	l.undo.add(func() { l.entries[page] = l.entries[page][:len(l.entries[page])-1] })
	return nil
}

// verifyWake checks that the wake that x asks for is the one that its state has.
func (w *world) verifyWake(h workItem, x *tx) error {
	value, _, err := h.l.state.Value(x.place(), flow.WakeName)
	if err != nil {
		return err
	}
	var kept engine.Wake
	if value != nil {
		if kept.At, kept.AtStart, _, err = flow.CutWake(value); err != nil {
			return err
		}
	}
	for _, a := range x.effects.Wakes {
		if a.Key == x.key && (!kept.At.Equal(a.At) || kept.AtStart != a.AtStart) {
			return fmt.Errorf("index asked for a wake of %s at %v, and its state has one at %v", x.key, a.At, kept.At)
		}
	}
	if _, wrote := x.effects.Writes.Get(x.place(), flow.WakeName); wrote && len(x.effects.Wakes) == 0 && !kept.At.IsZero() {
		return fmt.Errorf("index wrote a wake of %s at %v and did not ask for it", x.key, kept.At)
	}
	return nil
}

// collectFollow adds a command to a linked page.
func (e *indexEntry) collectFollow(m flow.Message) error {
	c, err := flow.FollowCommandFrom(m)
	command := beginFollow
	switch {
	case c.Kept:
		command = keepFollow
	case c.End:
		command = endFollow
	case c.Links:
		command = expandFollow
	}
	e.follows[c.ID+" "+c.URL] = command
	return err
}

// appendBody adds the body of m to all.
func appendBody[T any](m flow.Message, all *[]T) error {
	var v T
	err := json.Unmarshal(m.Encoded(), &v)
	*all = append(*all, v)
	return err
}

// recordMatch remembers which subscription each notification is for.
func (w *world) recordMatch(out []flow.Message) error {
	for _, m := range out {
		var a flow.Addressed
		if err := json.Unmarshal(m.Encoded(), &a); err != nil {
			return err
		}
		w.subscriptionOf[m.ID] = a.Subscription
	}
	return nil
}

// crash ends the process and starts it again: what was in memory is lost, and in a
// power cut what was not durable too. On Kafka it starts again later.
func (w *world) crash(p *process, why string) {
	if w.usesKafka() {
		w.crashProcess(p, why, false)
		return
	}
	w.stats.Crashes++
	cut := w.rng.IntN(3) == 0 || w.cfg.OnlyPowerCuts
	w.tracef("CRASH %s, power cut: %v", why, cut)
	if cut {
		w.stats.PowerCuts++
		w.transport.undo.rollback()
	}
	w.transport.undo.makeDurable()
	w.receivers.allowRepeatsAfterCrash()
	p.terminate()
	w.tenureCount++
	for _, l := range p.ownedLanes() {
		l.tenure = w.tenureCount
		l.startWakes()
	}
	w.clock.Check()
	w.buildStages(p)
}

// newClock returns the clock of the transport, which wakes everything if it is set back.
func (w *world) newClock() *engine.Clock {
	wakeAll := func() {
		for _, p := range w.processes {
			for _, l := range p.ownedLanes() {
				for _, wakes := range l.wakes {
					wakes.WakeAll()
				}
			}
		}
	}
	return &engine.Clock{Wall: func() time.Time { return w.now }, WakeAll: wakeAll, Log: slog.New(slog.DiscardHandler)}
}

// publish puts messages into their topics from outside; they are durable. While brokers are
// away they wait; who does not hear that they were written publishes them again.
func (w *world) publish(ms ...flow.Message) {
	for _, m := range ms {
		if w.outage {
			w.unpublished = append(w.unpublished, m)
			continue
		}
		w.transport.append(routedMessage{m, w.transport.laneOf(m.Key)})
		if w.usesKafka() && w.chance(15) {
			w.unpublished = append(w.unpublished, m)
		}
	}
	if w.transport.undo != nil {
		w.transport.undo.makeDurable()
	}
}
