package sim

import (
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

// injectProcessFault now and then begins or ends a fault of a process, a lane or the brokers.
func (w *world) injectProcessFault() error {
	if w.outage && w.rng.IntN(20) == 0 {
		w.outage = false
		w.tracef("the brokers are back")
	}
	for _, p := range w.processes {
		switch {
		case p.frozen && w.rng.IntN(30) == 0:
			p.frozen = false
			w.tracef("process %d goes on", p.id)
		case p.down && w.rng.IntN(12) == 0:
			w.startProcess(p)
		}
	}
	if w.rng.IntN(4) == 0 {
		w.retryPublishes()
		w.assignLanes()
	}
	if h := w.roundTrip; h != nil && w.rng.IntN(8) == 0 && (h.changeSeen || w.steps > h.startedAtStep+100) {
		if err := w.finishRoundTrip(); err != nil {
			return err
		}
	}
	if w.rng.IntN(40) == 0 {
		return w.startRoundTrip()
	}
	if w.rng.IntN(32) > 0 {
		return nil
	}
	switch w.rng.IntN(13) {
	case 0, 1, 2:
		return w.moveLane(w.rng.IntN(w.transport.lanes), true)
	case 3, 4:
		lane := w.rng.IntN(w.transport.lanes)
		if p := w.processWith(func(p *process) int { return len(p.attempts) }); p != nil { // while it delivers
			lane = w.transport.laneOf(p.attempts[0].Receiver.Sink)
		}
		return w.moveLane(lane, false)
	case 5, 6, 7:
		w.freezeProcess(pick(w.rng, w.processes))
	case 8:
		w.crashProcess(pick(w.rng, w.processes), "at once", w.rng.IntN(3) == 0)
	case 9:
		w.outage = true
		w.stats.Outages++
		w.tracef("the brokers are away")
	default:
		w.compactTopics()
	}
	return nil
}

// assignLanes gives lanes that nobody owns to processes that work.
func (w *world) assignLanes() {
	if w.outage {
		return
	}
	for id, owner := range w.laneOwners {
		if owner == nil && (w.faultsOver || w.rng.IntN(2) == 0) {
			if p := w.runningProcessExcept(nil); p != nil {
				w.gainLane(p, id)
			}
		}
	}
}

// runningProcessExcept returns any running process but the given one, or nil.
func (w *world) runningProcessExcept(not *process) *process {
	var ps []*process
	for _, p := range w.processes {
		if p.isRunning() && p != not {
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return pick(w.rng, ps)
}

// moveLane gives a lane to another process. Its owner finishes its transaction if it goes
// orderly, and does not notice at all if not.
func (w *world) moveLane(id int, orderly bool) error {
	from := w.laneOwners[id]
	to := w.runningProcessExcept(from)
	if from == nil || to == nil || w.outage {
		return nil
	}
	w.tracef("lane %d goes from process %d to %d, orderly: %v", id, from.id, to.id, orderly)
	if l := from.lanes[id]; l != nil && orderly {
		if l.batch.messages > 0 {
			if err := w.commitBatch(l); err != nil {
				return err
			}
		}
		if from.lanes[id] == l {
			w.loseLane(l)
		}
	}
	w.gainLane(to, id)
	return nil
}

// freezeProcess stops a process, which does not notice. The others get its lanes.
func (w *world) freezeProcess(p *process) {
	if !p.isRunning() {
		return
	}
	w.stats.Freezes++
	p.frozen = true
	w.tracef("process %d is frozen", p.id)
	w.releaseLanes(p)
}

// releaseLanes makes the group take all lanes from p.
func (w *world) releaseLanes(p *process) {
	for id, owner := range w.laneOwners {
		if owner == p {
			w.laneOwners[id] = nil
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
	w.tracef("CRASH of process %d %s, wiped: %v, power cut: %v", p.id, why, wiped, cut)
	for _, l := range p.ownedLanes() {
		w.loseLane(l)
		if cut && l.durableCopy != nil {
			p.laneCopies[l.id] = l.durableCopy
			w.stats.PowerCuts++
		}
	}
	if wiped {
		w.stats.WipedDisks++
		clear(p.laneCopies)
	}
	w.releaseLanes(p)
	p.terminate()
	p.down, p.frozen = true, false
}

// startProcess starts a process that is down.
func (w *world) startProcess(p *process) {
	p.down = false
	w.tracef("process %d starts", p.id)
	w.buildStages(p)
}

// compactTopics compacts a lane of the state topic, and forgets old requests.
func (w *world) compactTopics() {
	w.stats.Compactions++
	w.transport.states[w.rng.IntN(w.transport.lanes)].compact(w.steps, w.rng.IntN(20))
	lane := w.rng.IntN(w.transport.lanes)
	if n := len(w.transport.log(flow.TopicRequests)[lane]); n > 0 {
		first := w.transport.firstKept[flow.TopicRequests]
		first[lane] = max(first[lane], n-w.rng.IntN(3))
	}
}

// laneRoundTrip is the way of a lane to another process and back. A page in it is changed on the way there, and
// changed back on the way back.
type laneRoundTrip struct {
	site          *site
	from          *process
	startedAtStep int  // step
	changeSeen    bool // index took the change
}

func (w *world) startRoundTrip() error {
	var known []*site
	for _, s := range w.sites {
		made := func(e indexEntry) bool { return len(e.snapshots) > 0 }
		if s.hasETags && slices.ContainsFunc(w.committedHistory(s.url).entries[s.url], made) {
			known = append(known, s)
		}
	}
	if w.roundTrip != nil || len(known) == 0 {
		return nil
	}
	s := pick(w.rng, known)
	from := w.laneOwners[w.transport.laneOf(s.url)]
	if from == nil {
		return nil
	}
	w.roundTrip = &laneRoundTrip{site: s, from: from, startedAtStep: w.steps}
	w.offline, s.broken = false, false
	s.edit(w.rng)
	w.tracef("%s is edited while its lane goes away", s.url)
	w.sendCommand(s, flow.TypeCheckNow, nil)
	return w.moveLane(w.transport.laneOf(s.url), w.rng.IntN(2) == 0)
}

func (w *world) finishRoundTrip() error {
	s, from := w.roundTrip.site, w.roundTrip.from
	w.roundTrip = nil
	s.earlier = append(s.earlier, s.current)
	s.current = s.earlier[len(s.earlier)-2]
	w.stats.LaneRoundTrips++
	w.tracef("%s is edited back while its lane returns", s.url)
	w.sendCommand(s, flow.TypeCheckNow, nil)
	lane := w.transport.laneOf(s.url)
	owner := w.laneOwners[lane]
	if !from.isRunning() || owner == from || w.outage {
		return nil
	}
	if owner != nil {
		if l := owner.lanes[lane]; l != nil && l.batch.messages > 0 && w.rng.IntN(2) == 0 {
			if err := w.commitBatch(l); err != nil {
				return err
			}
		}
	}
	w.gainLane(from, lane)
	return nil
}

// retryPublishes publishes what could not be published, or was not known to be.
func (w *world) retryPublishes() {
	if w.outage {
		return
	}
	for _, m := range w.unpublished {
		w.transport.append(routedMessage{m, w.transport.laneOf(m.Key)})
	}
	w.unpublished = nil
}

// endProcessFaults ends all faults of processes and brokers.
func (w *world) endProcessFaults() {
	w.outage = false
	w.retryPublishes()
	for _, p := range w.processes {
		p.frozen = false
		if p.down {
			w.startProcess(p)
		}
		for _, l := range p.ownedLanes() {
			if l.epoch != w.transport.states[l.id].epoch {
				w.loseLane(l)
			}
		}
	}
	w.assignLanes()
}

// ownedLane returns the lane of a key as the process that owns it has it.
func (w *world) ownedLane(key string) *lane {
	id := w.transport.laneOf(key)
	if !w.usesKafka() {
		return w.processes[0].lanes[id]
	}
	return w.laneOwners[id].lanes[id]
}

// committedHistory returns what was done in the lane of a key, as far as it is committed.
func (w *world) committedHistory(key string) laneHistory {
	if w.usesKafka() {
		return w.transport.states[w.transport.laneOf(key)].laneHistory
	}
	return w.ownedLane(key).laneHistory
}
