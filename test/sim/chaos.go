package sim

import (
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

// disturb lets something go wrong between the processes, or well again.
func (w *world) disturb() error {
	if w.outage && w.rng.IntN(20) == 0 {
		w.outage = false
		w.tracef("the brokers are back")
	}
	for _, p := range w.processes {
		switch {
		case p.frozen && w.rng.IntN(30) == 0:
			p.frozen = false
			w.tracef("process %d goes on", p.name)
		case p.down && w.rng.IntN(12) == 0:
			w.startProcess(p)
		}
	}
	if w.rng.IntN(4) == 0 {
		w.retry()
		w.assign()
	}
	if h := w.shuttling; h != nil && w.rng.IntN(8) == 0 && (h.seen || w.steps > h.since+100) {
		if err := w.shuttleBack(); err != nil {
			return err
		}
	}
	if w.rng.IntN(40) == 0 {
		return w.shuttle()
	}
	if w.rng.IntN(32) > 0 {
		return nil
	}
	switch w.rng.IntN(13) {
	case 0, 1, 2:
		return w.move(w.rng.IntN(w.t.lanes), true)
	case 3, 4:
		lane := w.rng.IntN(w.t.lanes)
		if p := w.busy(func(p *process) int { return len(p.attempts) }); p != nil { // while it delivers
			lane = w.t.lane(p.attempts[0].Receiver.Sink)
		}
		return w.move(lane, false)
	case 5, 6, 7:
		w.freeze(pick(w.rng, w.processes))
	case 8:
		w.crashProcess(pick(w.rng, w.processes), "at once", w.rng.IntN(3) == 0)
	case 9:
		w.outage = true
		w.stats.Outages++
		w.tracef("the brokers are away")
	default:
		w.compact()
	}
	return nil
}

// assign gives lanes that nobody owns to processes that work.
func (w *world) assign() {
	if w.outage {
		return
	}
	for id, owner := range w.owner {
		if owner == nil && (w.calm || w.rng.IntN(2) == 0) {
			if p := w.worker(nil); p != nil {
				w.gain(p, id)
			}
		}
	}
}

// worker returns any process that works and is not the given one, or nil.
func (w *world) worker(not *process) *process {
	var ps []*process
	for _, p := range w.processes {
		if p.works() && p != not {
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return pick(w.rng, ps)
}

// move gives a lane to another process. Its owner finishes its transaction if it goes
// orderly, and does not notice at all if not.
func (w *world) move(id int, orderly bool) error {
	from := w.owner[id]
	to := w.worker(from)
	if from == nil || to == nil || w.outage {
		return nil
	}
	w.tracef("lane %d goes from process %d to %d, orderly: %v", id, from.name, to.name, orderly)
	if l := from.lanes[id]; l != nil && orderly {
		if l.batch.n > 0 {
			if err := w.commit(l); err != nil {
				return err
			}
		}
		if from.lanes[id] == l {
			w.lose(l)
		}
	}
	w.gain(to, id)
	return nil
}

// freeze makes a process stand still. The others get its lanes.
func (w *world) freeze(p *process) {
	if !p.works() {
		return
	}
	w.stats.Freezes++
	p.frozen = true
	w.tracef("process %d is frozen", p.name)
	w.disown(p)
}

// disown takes all lanes from p, as the group sees it.
func (w *world) disown(p *process) {
	for id, owner := range w.owner {
		if owner == p {
			w.owner[id] = nil
		}
	}
}

// crashProcess ends a process; its disk may be lost with it, or what was written last.
func (w *world) crashProcess(p *process, why string, wiped bool) {
	if p.down {
		return
	}
	w.stats.Crashes++
	cut := w.rng.IntN(3) == 0
	w.tracef("CRASH of process %d %s, wiped: %v, power cut: %v", p.name, why, wiped, cut)
	for _, l := range p.owned() {
		w.lose(l)
		if cut && l.saved != nil {
			p.kept[l.id] = l.saved
			w.stats.PowerCuts++
		}
	}
	if wiped {
		w.stats.Wipes++
		clear(p.kept)
	}
	w.disown(p)
	p.end()
	p.down, p.frozen = true, false
}

// startProcess starts a process that is down.
func (w *world) startProcess(p *process) {
	p.down = false
	w.tracef("process %d starts", p.name)
	w.build(p)
}

// compact compacts a lane of the state topic, and forgets old requests.
func (w *world) compact() {
	w.stats.Compactions++
	w.t.states[w.rng.IntN(w.t.lanes)].compact(w.steps, w.rng.IntN(20))
	lane := w.rng.IntN(w.t.lanes)
	if n := len(w.t.log(flow.TopicRequests)[lane]); n > 0 {
		first := w.t.first[flow.TopicRequests]
		first[lane] = max(first[lane], n-w.rng.IntN(3))
	}
}

// shuttle is a page that is changed while its lane goes to another process, and changed
// back while it returns.
type shuttle struct {
	s     *site
	from  *process
	since int  // step
	seen  bool // the change was seen
}

func (w *world) shuttle() error {
	var known []*site
	for _, s := range w.sites {
		made := func(e entry) bool { return len(e.snapshots) > 0 }
		if s.etags && slices.ContainsFunc(w.stands(s.url).history[s.url], made) {
			known = append(known, s)
		}
	}
	if w.shuttling != nil || len(known) == 0 {
		return nil
	}
	s := pick(w.rng, known)
	from := w.owner[w.t.lane(s.url)]
	if from == nil {
		return nil
	}
	w.shuttling = &shuttle{s: s, from: from, since: w.steps}
	w.offline, s.broken = false, false
	s.edit(w.rng)
	w.tracef("%s is edited while its lane goes away", s.url)
	w.send(s, flow.TypeCheckNow, nil)
	return w.move(w.t.lane(s.url), w.rng.IntN(2) == 0)
}

func (w *world) shuttleBack() error {
	s, from := w.shuttling.s, w.shuttling.from
	w.shuttling = nil
	s.earlier = append(s.earlier, s.body)
	s.body = s.earlier[len(s.earlier)-2]
	w.stats.Shuttles++
	w.tracef("%s is edited back while its lane returns", s.url)
	w.send(s, flow.TypeCheckNow, nil)
	lane := w.t.lane(s.url)
	owner := w.owner[lane]
	if !from.works() || owner == from || w.outage {
		return nil
	}
	if owner != nil {
		if l := owner.lanes[lane]; l != nil && l.batch.n > 0 && w.rng.IntN(2) == 0 {
			if err := w.commit(l); err != nil {
				return err
			}
		}
	}
	w.gain(from, lane)
	return nil
}

// retry publishes what could not be published, or was not known to be.
func (w *world) retry() {
	if w.outage {
		return
	}
	for _, m := range w.blocked {
		w.t.append(laned{m, w.t.lane(m.Key)})
	}
	w.blocked = nil
}

// recover ends all that goes wrong between processes.
func (w *world) recover() {
	w.outage = false
	w.retry()
	for _, p := range w.processes {
		p.frozen = false
		if p.down {
			w.startProcess(p)
		}
		for _, l := range p.owned() {
			if l.epoch != w.t.states[l.id].epoch {
				w.lose(l)
			}
		}
	}
	w.assign()
}

// holder returns the lane of a key in the process that owns it.
func (w *world) holder(key string) *lane {
	id := w.t.lane(key)
	if !w.kafka() {
		return w.processes[0].lanes[id]
	}
	return w.owner[id].lanes[id]
}

// stands returns what was done in the lane of a key by what is committed.
func (w *world) stands(key string) ledger {
	if w.kafka() {
		return w.t.states[w.t.lane(key)].ledger
	}
	return w.holder(key).ledger
}
