package sim

import (
	"maps"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// process is one of the processes that share the lanes. What it holds in memory is lost
// with it, and when it starts again it has another life.
type process struct {
	w    *world
	name int

	procs    map[consumer]flow.Processor
	delivery *sinks.Delivery
	checks   []*check
	attempts []attempt
	inbox    []posted

	lanes map[int]*lane // that it owns, or believes to own
	kept  map[int]*lane // copies of lanes that it does not own
	// frozen processes do nothing for a while, and do not notice it. Those that are down
	// start again sooner or later.
	frozen, down bool
}

// attempt is one that delivery's pool is to make. It is stale where the lane went away since.
type attempt struct {
	sinks.Attempt
	stale bool
}

// posted is the result of an attempt on its way to delivery.
type posted struct {
	message flow.Message
	answers []answer // in the order of the attempt's notifications; only the last may be an error
	of      sinks.Attempt
}

// answer is how it went with one notification of an attempt.
type answer struct {
	notification string
	err          error
	taken        int // which reception it is the answer of, or -1
}

// works reports whether p does anything now.
func (p *process) works() bool { return !p.frozen && !p.down }

// tenure tells apart the times in which p has the lane of a key.
func (p *process) tenure(key string) uint64 {
	if l := p.lanes[p.w.t.lane(key)]; l != nil {
		return uint64(l.tenure)
	}
	return 0
}

// owned lists the lanes of p in order.
func (p *process) owned() []*lane {
	var ls []*lane
	for _, id := range slices.Sorted(maps.Keys(p.lanes)) {
		ls = append(ls, p.lanes[id])
	}
	return ls
}

// ready lists all that p can handle next, in a fixed order.
func (p *process) ready() []handleable {
	var hs []handleable
	if !p.works() {
		return nil
	}
	for _, l := range p.owned() {
		for _, c := range consumers {
			if m, at, ok := p.w.t.next(c, l); ok && !p.w.outage {
				hs = append(hs, handleable{p: p, l: l, c: c, at: at, message: m, kind: engine.FromLog})
			}
			if wk, due, _ := l.wakes[c].Next(p.w.now); due && p.w.t.at(c, l) >= l.backlog[c] {
				hs = append(hs, handleable{p: p, l: l, c: c, message: *flow.WakeMessage(c.Group, c.Topic, wk.Key, wk.At), kind: engine.FromWake})
			}
		}
	}
	for i, x := range p.inbox {
		if l := p.lanes[p.w.t.lane(x.message.Key)]; l != nil {
			hs = append(hs, handleable{p: p, l: l, c: deliveryConsumer, message: x.message, kind: engine.FromPost, posted: i})
		}
	}
	return hs
}

// forget takes that nobody will hear of how an attempt ended.
func (p *process) forget(x posted) {
	p.w.receivers.unheard(x)
	p.delivery.Posted(x.of)
}

// end ends the process: what was in memory is lost.
func (p *process) end() {
	for _, x := range p.inbox {
		p.w.receivers.unheard(x)
	}
	p.checks, p.attempts, p.inbox = nil, nil, nil
}
