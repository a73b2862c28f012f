package sim

import (
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxLazyWait is how long what nobody waits for may wait for a transaction.
const maxLazyWait = 30 * time.Second

// nonTransactional holds the topics whose messages are published outside of transactions.
var nonTransactional = map[string]bool{flow.TopicRequests: true, flow.TopicDecisions: true}

// messagesBeforeRestore is how many messages WorkBeforeRestore handles with an incomplete copy.
const messagesBeforeRestore = 6

// addToBatch makes what x did part of its lane. It is committed with what else waits, or is lost
// with its position.
func (w *world) addToBatch(h workItem, x *tx) error {
	p, l := h.p, h.l
	var logged []routedMessage
	var hints []flow.Message
	for _, o := range x.effects.Out {
		if nonTransactional[o.Topic] {
			hints = append(hints, o.Message)
		} else {
			logged = append(logged, o)
		}
	}
	lazy := !x.effects.Sync && len(logged) == 0
	changed := l.apply(h, x, lazy)
	w.actionCount++
	if err := w.recordHandled(h, x); err != nil {
		return err
	}
	now, act := w.now, w.actionCount
	after := []func(){func() { w.handledAt, w.followedAction = now, act }}
	if len(hints) > 0 {
		after = append(after, func() { w.publishHints(hints) })
	}
	after = append(after, x.effects.OnCommit...)
	b := &l.batch
	if w.cfg.Fault == OutputsOutsideTransaction {
		for _, o := range logged {
			w.transport.append(o)
		}
		logged = nil
	}
	if b.messages == 0 {
		b.beganAt = w.now
	}
	b.messages++
	if h.kind == engine.FromPost {
		b.results = append(b.results, p.inbox[h.inboxIndex])
		p.inbox = slices.Delete(p.inbox, h.inboxIndex, h.inboxIndex+1)
	}
	b.records = append(b.records, changed...)
	b.outputs = append(b.outputs, logged...)
	if b.urgent = b.urgent || !lazy; b.urgent {
		b.onCommit = append(b.onCommit, after...)
	} else {
		w.stats.LazyMessages++
		for _, f := range after {
			f()
		}
	}
	if h.kind == engine.FromLog && (w.cfg.Fault == PositionAheadOfLazyState && lazy || w.cfg.Fault == AckBeforeWrite && !lazy) {
		w.transport.states[l.id].append(positionRecord(x.consumer, h.offset+1), w.steps)
	}
	if l.withheldRecords != nil && b.messages >= messagesBeforeRestore {
		for _, r := range l.withheldRecords {
			l.applyRecord(r)
		}
		l.withheldRecords = nil
	}
	if b.urgent && b.messages >= b.limit {
		return w.commitBatch(l)
	}
	return nil
}

// commitBatch commits what was done in l in one transaction. It is refused where the lane has another
// owner. The process may not learn what became of it: then it gives the lane up and restores it.
func (w *world) commitBatch(l *lane) error {
	p, log := l.owner, w.transport.states[l.id]
	switch {
	case w.outage:
		return nil
	case l.epoch != log.epoch:
		w.stats.FencedCommits++
		w.tracef("process %d is fenced in lane %d", p.id, l.id)
		w.loseLane(l)
		if w.chance(2) { // its session is over
			for _, other := range p.ownedLanes() {
				w.loseLane(other)
			}
		}
		return nil
	case w.chance(40):
		w.stats.UnknownCommits++
		all := w.rng.IntN(2) == 0
		w.tracef("process %d does not know what became of its transaction in lane %d; it has everything: %v", p.id, l.id, all)
		if all {
			w.writeBatch(l)
			log.laneHistory = l.laneHistory.copy()
		}
		w.loseLane(l)
		return nil
	}
	w.stats.Transactions++
	w.writeBatch(l)
	l.undo.makeDurable()
	l.nextOffset, l.completeAtStep = log.nextOffset, w.steps
	after := l.batch.onCommit
	for _, x := range l.batch.results {
		w.receivers.confirm(x)
	}
	w.tracef("process %d commits %d messages in lane %d", p.id, l.batch.messages, l.id)
	l.batch = w.newBatch()
	for _, f := range after {
		f()
	}
	log.laneHistory = l.laneHistory.copy()
	return w.deferredErr
}

// writeBatch makes the changes and outputs of l visible at once.
func (w *world) writeBatch(l *lane) {
	log := w.transport.states[l.id]
	for _, r := range l.batch.records {
		at := r.Place.Group == positionsGroup
		if w.cfg.Fault == NoPositions && at || w.cfg.Fault == LazyStateLeftBehind && !at && r.lazy {
			continue
		}
		log.append(r, w.steps)
	}
	for _, o := range l.batch.outputs {
		w.transport.append(o)
	}
}

// publishHints publishes messages outside of any transaction. They may be lost, or come
// twice.
func (w *world) publishHints(ms []flow.Message) {
	switch {
	case w.outage && w.rng.IntN(2) == 0, w.chance(30):
		w.tracef("%s for %s is lost", ms[0].Type, ms[0].Key)
	default:
		w.publish(ms...)
	}
}

// runningLanes lists the lanes of processes that work.
func (w *world) runningLanes() []*lane {
	var ls []*lane
	for _, p := range w.processes {
		if p.isRunning() {
			ls = append(ls, p.ownedLanes()...)
		}
	}
	return ls
}

// flushBatches commits the batches that wait too long, or all of them.
func (w *world) flushBatches(all bool) error {
	for _, l := range w.runningLanes() {
		if l.batch.messages == 0 || !all && w.now.Sub(l.batch.beganAt) < maxLazyWait || l.owner.lanes[l.id] != l { // it went with another
			continue
		}
		if err := w.commitBatch(l); err != nil {
			return err
		}
	}
	return nil
}

// urgentLanes lists the lanes in which a transaction is to be committed soon.
func (w *world) urgentLanes() []*lane {
	return slices.DeleteFunc(w.runningLanes(), func(l *lane) bool { return !l.batch.urgent || w.outage })
}
