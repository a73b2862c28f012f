package sim

import (
	"slices"

	"github.com/vokter/vokter/test/txtest"
)

// Fault is a rule of the protocol that is broken on purpose.
type Fault int

// The faults.
const (
	NoFence        Fault = iota + 1 // an earlier owner of a lane can go on committing
	EarlyWork                       // work begins before the copy is complete
	TrustedCopy                     // a copy that was kept is not caught up
	KeptTail                        // what was not committed stays in a copy
	OldCopy                         // a copy that may lack tombstones is not made anew
	PlainOutputs                    // outputs do not wait for the transaction
	NoPosition                      // positions are not part of the transaction
	LostLazies                      // the position of what waits moves, its state does not
	LazyLeftBehind                  // a transaction has the position of what waits, not its state
	EarlyAck                        // messages are acknowledged before the batch of what they caused is written
)

// kafka reports whether the lanes are shared over Kafka.
func (w *world) kafka() bool { return w.t.states != nil }

// gain makes p the owner of a lane: whoever had it is fenced, and the copy that p has is
// brought up to that before anything is handled. It may be interrupted.
func (w *world) gain(p *process, id int) {
	if l := p.lanes[id]; l != nil {
		w.lose(l)
	}
	w.stats.Moves++
	log := w.t.states[id]
	if w.cfg.Fault != NoFence {
		log.epoch++
	}
	log.append(stateRecord{}, w.steps) // the fence
	l := p.kept[id]
	if l == nil {
		l = newLane(id, &undoing{})
	}
	old := w.steps-l.synced > tombstonesKept
	if old && l.at > 0 && w.cfg.Fault != OldCopy {
		l.state, l.at = make(txtest.Memory), 0
		w.stats.Rebuilds++
	}
	missing := log.missing(l)
	switch {
	case w.cfg.Fault == TrustedCopy && l.at > 0:
		missing = nil
	case w.cfg.Fault == EarlyWork:
		l.rest, missing = missing[len(missing)/2:], missing[:len(missing)/2]
	}
	stop := len(missing)
	interrupted := w.chance(20)
	if interrupted {
		stop = w.rng.IntN(stop + 1)
	}
	for _, r := range missing[:stop] {
		l.take(r)
	}
	w.stats.Restored += stop
	if interrupted {
		p.kept[id] = l
		w.tracef("process %d: restoring lane %d was interrupted", p.name, id)
		return
	}
	delete(p.kept, id)
	w.tenures++
	l.at, l.synced, l.epoch, l.tenure = log.next, w.steps, log.epoch, w.tenures
	l.ledger = log.copy()
	l.saved = nil
	if w.chance(3) {
		l.saved = l.copy(&undoing{})
	}
	l.start()
	for _, c := range consumers {
		l.backlog[c] = len(w.t.log(c.Topic)[id])
	}
	l.batch = w.newBatch()
	l.by, p.lanes[id], w.owner[id] = p, l, p
	w.tracef("process %d has lane %d, restored %d records", p.name, id, stop)
}

func (w *world) newBatch() batch {
	return batch{limit: 1 + w.rng.IntN(20), began: w.now}
}

// lose takes a lane from its process, with all that was done in it since its last transaction. The
// copy stays.
func (w *world) lose(l *lane) {
	p, id := l.by, l.id
	w.stats.Lost += l.batch.n
	if w.cfg.Fault != KeptTail {
		l.undo.rollback()
	}
	for _, x := range l.batch.results {
		p.forget(x)
	}
	l.undo.settle()
	l.batch, l.rest = batch{}, nil
	delete(p.lanes, id)
	p.kept[id] = l
	if w.owner[id] == p {
		w.owner[id] = nil
	}
	for i, a := range p.attempts {
		if w.t.lane(a.Receiver.Sink) == id {
			p.attempts[i].stale = true
		}
	}
	p.inbox = slices.DeleteFunc(p.inbox, func(x posted) bool {
		if w.t.lane(x.message.Key) != id {
			return false
		}
		p.forget(x)
		return true
	})
	w.tracef("process %d gives up lane %d", p.name, id)
}
