package sim

import (
	"slices"

	"github.com/vokter/vokter/test/txtest"
)

// Fault is a rule of the protocol that is broken on purpose.
type Fault int

// The faults.
const (
	NoFence                   Fault = iota + 1 // an earlier owner of a lane can go on committing
	WorkBeforeRestore                          // work begins before the copy is complete
	CopyNotCaughtUp                            // a copy that was kept is not caught up
	UncommittedKept                            // what was not committed stays in a copy
	OldCopyKept                                // a copy that may lack tombstones is not made anew
	OutputsOutsideTransaction                  // outputs do not wait for the transaction
	NoPositions                                // positions are not part of the transaction
	PositionAheadOfLazyState                   // the position of what waits moves, its state does not
	LazyStateLeftBehind                        // a transaction has the position of what waits, not its state
	FailedOutputsKept                          // a message of a chain fails after it emitted, and that goes out
	SavepointNotUndone                         // what a failed attempt at a message of a chain wrote stays
	BatchBesideEdit                            // a batch of a backlog runs beside an edit of its page
	AckBeforeWrite                             // messages are acknowledged before the batch of what they caused is written
)

// usesKafka reports whether the lanes are shared over Kafka.
func (w *world) usesKafka() bool { return w.transport.states != nil }

// gainLane makes p the owner of a lane: whoever had it is fenced, and the copy that p has is
// brought up to that before anything is handled. It may be interrupted.
func (w *world) gainLane(p *process, id int) {
	if l := p.lanes[id]; l != nil {
		w.loseLane(l)
	}
	w.stats.LaneMoves++
	log := w.transport.states[id]
	if w.cfg.Fault != NoFence {
		log.epoch++
	}
	log.append(stateRecord{}, w.steps) // the fence
	l := p.laneCopies[id]
	if l == nil {
		l = newLane(id, &undoLog{})
	}
	old := w.steps-l.completeAtStep > tombstonesKept
	if old && l.nextOffset > 0 && w.cfg.Fault != OldCopyKept {
		l.state, l.nextOffset = make(txtest.Memory), 0
		w.stats.RebuiltCopies++
	}
	missing := log.missingRecords(l)
	switch {
	case w.cfg.Fault == CopyNotCaughtUp && l.nextOffset > 0:
		missing = nil
	case w.cfg.Fault == WorkBeforeRestore:
		l.withheldRecords, missing = missing[len(missing)/2:], missing[:len(missing)/2]
	}
	stop := len(missing)
	interrupted := w.chance(20)
	if interrupted {
		stop = w.rng.IntN(stop + 1)
	}
	for _, r := range missing[:stop] {
		l.applyRecord(r)
	}
	w.stats.RestoredRecords += stop
	if interrupted {
		p.laneCopies[id] = l
		w.tracef("process %d: restoring lane %d was interrupted", p.id, id)
		return
	}
	delete(p.laneCopies, id)
	w.tenureCount++
	l.nextOffset, l.completeAtStep, l.epoch, l.tenure = log.nextOffset, w.steps, log.epoch, w.tenureCount
	l.laneHistory = log.copy()
	l.durableCopy = nil
	if w.chance(3) {
		l.durableCopy = l.copy(&undoLog{})
	}
	l.startWakes()
	for _, c := range consumers {
		l.backlog[c] = len(w.transport.log(c.Topic)[id])
	}
	l.batch = w.newBatch()
	l.owner, p.lanes[id], w.laneOwners[id] = p, l, p
	w.tracef("process %d has lane %d, restored %d records", p.id, id, stop)
}

func (w *world) newBatch() batch {
	return batch{limit: 1 + w.rng.IntN(20), beganAt: w.now}
}

// loseLane takes a lane from its process, with all that was done in it since its last transaction. The
// copy stays.
func (w *world) loseLane(l *lane) {
	p, id := l.owner, l.id
	w.stats.LostMessages += l.batch.messages
	if w.cfg.Fault != UncommittedKept {
		l.undo.rollback()
	}
	for _, x := range l.batch.results {
		p.dropResult(x)
	}
	l.undo.makeDurable()
	l.batch, l.withheldRecords = batch{}, nil
	delete(p.lanes, id)
	p.laneCopies[id] = l
	if w.laneOwners[id] == p {
		w.laneOwners[id] = nil
	}
	for i, a := range p.attempts {
		if w.transport.laneOf(a.Receiver.Sink) == id {
			p.attempts[i].stale = true
		}
	}
	p.inbox = slices.DeleteFunc(p.inbox, func(x attemptResult) bool {
		if w.transport.laneOf(x.message.Key) != id {
			return false
		}
		p.dropResult(x)
		return true
	})
	w.tracef("process %d gives up lane %d", p.id, id)
}
