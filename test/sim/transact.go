package sim

import (
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// lazyFor is how long what nobody waits for may wait for a transaction.
const lazyFor = 30 * time.Second

// ephemeral are the topics whose messages are published outside of transactions.
var ephemeral = map[string]bool{flow.TopicRequests: true, flow.TopicDecisions: true}

// earlyMessages is how many messages EarlyWork handles with an incomplete copy.
const earlyMessages = 6

// merge makes what x did part of its lane. It is committed with what else waits, or is lost
// with its position.
func (w *world) merge(h handleable, x *tx, after []func()) error {
	p, l := h.p, h.l
	var logged []laned
	var hints []flow.Message
	for _, o := range x.did.Out {
		if ephemeral[o.Topic] {
			hints = append(hints, o.Message)
		} else {
			logged = append(logged, o)
		}
	}
	lazy := !x.did.Sync && len(logged) == 0
	at := -1
	if h.fromLog {
		at = h.at
	}
	l.apply(x, at, lazy)
	w.act++
	if err := w.record(h, x); err != nil {
		return err
	}
	if len(hints) > 0 {
		after = append([]func(){func() { w.hint(hints) }}, after...)
	}
	now, act := w.now, w.act
	after = append([]func(){func() { w.handled, w.followed = now, act }}, after...)
	b := &l.batch
	if w.cfg.Fault == PlainOutputs {
		for _, o := range logged {
			w.t.append(o)
		}
		logged = nil
	}
	if b.n == 0 {
		b.began = w.now
	}
	b.n++
	if !h.fromLog && !h.waker {
		b.results = append(b.results, p.inbox[h.posted])
		p.inbox = slices.Delete(p.inbox, h.posted, h.posted+1)
	}
	b.out = append(b.out, logged...)
	if b.urgent = b.urgent || !lazy; b.urgent {
		b.after = append(b.after, after...)
	} else {
		w.stats.Lazy++
		for _, f := range after {
			f()
		}
	}
	if at >= 0 && (w.cfg.Fault == LostLazies && lazy || w.cfg.Fault == EarlyAck && !lazy) {
		w.t.states[l.id].append(stateRecord{recordID: recordID{'p', x.c.group, x.c.topic, ""}, pos: at + 1}, w.steps)
	}
	if l.rest != nil && b.n >= earlyMessages {
		for _, r := range l.rest {
			l.take(r)
		}
		l.rest = nil
	}
	if b.urgent && b.n >= b.limit {
		return w.commit(p, l)
	}
	return nil
}

// commit makes one transaction of what p did in l. It is refused where the lane has another
// owner, and p may not learn what became of it: then it gives the lane up and restores it.
func (w *world) commit(p *process, l *lane) error {
	log := w.t.states[l.id]
	switch {
	case w.outage:
		return nil
	case l.epoch != log.epoch:
		w.stats.Fenced++
		w.tracef("process %d is fenced in lane %d", p.name, l.id)
		w.lose(p, l.id)
		if w.chance(2) { // its session is over
			for _, other := range p.owned() {
				w.lose(p, other.id)
			}
		}
		return nil
	case w.chance(40):
		w.stats.Unknown++
		all := w.rng.IntN(2) == 0
		w.tracef("process %d does not know what became of its transaction in lane %d; it has everything: %v", p.name, l.id, all)
		if all {
			w.write(l)
			log.ledger = l.ledger.copy()
		}
		w.lose(p, l.id)
		return nil
	}
	w.stats.Transactions++
	w.write(l)
	l.undo.settle()
	clear(l.dirty)
	l.at, l.synced = log.next, w.steps
	after := l.batch.after
	for _, x := range l.batch.results {
		w.receivers.confirmed(x)
	}
	w.tracef("process %d commits %d messages in lane %d", p.name, l.batch.n, l.id)
	l.batch = w.newBatch()
	for _, f := range after {
		f()
	}
	log.ledger = l.ledger.copy()
	return w.broken
}

// write makes the changes and outputs of l visible at once.
func (w *world) write(l *lane) {
	log := w.t.states[l.id]
	for _, r := range l.changes() {
		if w.cfg.Fault == NoPosition && r.kind == 'p' || w.cfg.Fault == LazyLeftBehind && r.kind != 'p' && l.dirty[r.recordID] {
			continue
		}
		log.append(r, w.steps)
	}
	for _, o := range l.batch.out {
		w.t.append(o)
	}
}

// hint publishes ephemeral messages outside of any transaction. They may be lost, or come
// twice.
func (w *world) hint(ms []flow.Message) {
	switch {
	case w.outage && w.rng.IntN(2) == 0, w.chance(30):
		w.tracef("%s for %s is lost", ms[0].Type, ms[0].Key)
	default:
		w.publish(ms...)
	}
}

// flush commits what waits too long in lanes of processes that work.
func (w *world) flush(all bool) error {
	for _, p := range w.processes {
		for _, l := range p.owned() {
			if p.works() && l.batch.n > 0 && (all || w.now.Sub(l.batch.began) >= lazyFor) {
				if p.lanes[l.id] != l {
					continue // it went with another
				}
				if err := w.commit(p, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// open lists the lanes in which a transaction is to be committed soon.
func (w *world) open() []*lane {
	var ls []*lane
	for _, p := range w.processes {
		for _, l := range p.owned() {
			if p.works() && l.batch.urgent && !w.outage {
				ls = append(ls, l)
			}
		}
	}
	return ls
}

// ownerOf returns the process that holds l.
func (w *world) ownerOf(l *lane) *process {
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.lanes[l.id] == l })
	return w.processes[i]
}
