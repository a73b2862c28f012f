package sim

import (
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
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
func (w *world) merge(h handleable, x *tx) error {
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
	changed := l.apply(h, x, lazy)
	w.act++
	if err := w.record(h, x); err != nil {
		return err
	}
	now, act := w.now, w.act
	after := []func(){func() { w.handled, w.followed = now, act }}
	if len(hints) > 0 {
		after = append(after, func() { w.hint(hints) })
	}
	after = append(after, x.did.OnCommit...)
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
	if h.kind == engine.FromPost {
		b.results = append(b.results, p.inbox[h.posted])
		p.inbox = slices.Delete(p.inbox, h.posted, h.posted+1)
	}
	b.records = append(b.records, changed...)
	b.out = append(b.out, logged...)
	if b.urgent = b.urgent || !lazy; b.urgent {
		b.after = append(b.after, after...)
	} else {
		w.stats.Lazy++
		for _, f := range after {
			f()
		}
	}
	if h.kind == engine.FromLog && (w.cfg.Fault == LostLazies && lazy || w.cfg.Fault == EarlyAck && !lazy) {
		w.t.states[l.id].append(position(x.c, h.at+1), w.steps)
	}
	if l.rest != nil && b.n >= earlyMessages {
		for _, r := range l.rest {
			l.take(r)
		}
		l.rest = nil
	}
	if b.urgent && b.n >= b.limit {
		return w.commit(l)
	}
	return nil
}

// commit makes one transaction of what was done in l. It is refused where the lane has another
// owner, and the process may not learn what became of it: then it gives the lane up and restores it.
func (w *world) commit(l *lane) error {
	p, log := l.by, w.t.states[l.id]
	switch {
	case w.outage:
		return nil
	case l.epoch != log.epoch:
		w.stats.Fenced++
		w.tracef("process %d is fenced in lane %d", p.name, l.id)
		w.lose(l)
		if w.chance(2) { // its session is over
			for _, other := range p.owned() {
				w.lose(other)
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
		w.lose(l)
		return nil
	}
	w.stats.Transactions++
	w.write(l)
	l.undo.settle()
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
	for _, r := range l.batch.records {
		at := r.Place.Group == positions
		if w.cfg.Fault == NoPosition && at || w.cfg.Fault == LazyLeftBehind && !at && r.lazy {
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

// working lists the lanes of processes that work.
func (w *world) working() []*lane {
	var ls []*lane
	for _, p := range w.processes {
		if p.works() {
			ls = append(ls, p.owned()...)
		}
	}
	return ls
}

// flush commits what waits too long.
func (w *world) flush(all bool) error {
	for _, l := range w.working() {
		if l.batch.n == 0 || !all && w.now.Sub(l.batch.began) < lazyFor || l.by.lanes[l.id] != l { // it went with another
			continue
		}
		if err := w.commit(l); err != nil {
			return err
		}
	}
	return nil
}

// open lists the lanes in which a transaction is to be committed soon.
func (w *world) open() []*lane {
	return slices.DeleteFunc(w.working(), func(l *lane) bool { return !l.batch.urgent || w.outage })
}
