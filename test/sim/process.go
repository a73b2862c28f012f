package sim

import (
	"maps"
	"slices"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// process is one of the processes that share the lanes. What it holds in memory is lost
// with it, and when it starts again it has another life.
type process struct {
	world *world
	id    int

	processors map[consumer]flow.Processor
	delivery   *delivery.Delivery
	checks     []*check
	attempts   []attempt
	inbox      []attemptResult

	lanes      map[int]*lane // that it owns, or believes to own
	laneCopies map[int]*lane // copies of lanes that it does not own
	// frozen processes do nothing for a while, and do not notice it. Those that are down
	// start again sooner or later.
	frozen, down bool
}

// attempt is one that delivery's pool is to make. It is stale where the lane went away since.
type attempt struct {
	delivery.Attempt
	stale bool
}

// attemptResult is the result of an attempt on its way to delivery.
type attemptResult struct {
	message flow.Message
	results []deliveryResult // in the order of the attempt's notifications; only the last may be an error
	attempt delivery.Attempt
}

// deliveryResult is how it went with one notification of an attempt.
type deliveryResult struct {
	notificationID string
	err            error
	reception      int // the index of its reception, or -1
}

// isRunning reports whether p does anything now.
func (p *process) isRunning() bool { return !p.frozen && !p.down }

// tenureOf returns a number that differs between the times in which p has the lane of a key.
func (p *process) tenureOf(key string) uint64 {
	if l := p.lanes[p.world.transport.laneOf(key)]; l != nil {
		return uint64(l.tenure)
	}
	return 0
}

// ownedLanes lists the lanes of p in order.
func (p *process) ownedLanes() []*lane {
	var ls []*lane
	for _, id := range slices.Sorted(maps.Keys(p.lanes)) {
		ls = append(ls, p.lanes[id])
	}
	return ls
}

// readyWork lists all that p can handle next, in a fixed order.
func (p *process) readyWork() []workItem {
	var hs []workItem
	if !p.isRunning() {
		return nil
	}
	for _, l := range p.ownedLanes() {
		for _, c := range consumers {
			if m, at, ok := p.world.transport.nextMessage(c, l); ok && !p.world.outage {
				hs = append(hs, workItem{p: p, l: l, c: c, offset: at, message: m, kind: engine.FromLog})
			}
		}
		for _, c := range wakers {
			head := chain.HeadOf(c)
			if wk, due, _ := l.wakes[c].Next(p.world.now); due && p.world.transport.position(head, l) >= l.backlog[head] {
				hs = append(hs, workItem{p: p, l: l, c: c, message: *flow.WakeMessage(c.Group, c.Topic, wk.Key, wk.At), kind: engine.FromWake})
			}
		}
	}
	for i, x := range p.inbox {
		if l := p.lanes[p.world.transport.laneOf(x.message.Key)]; l != nil {
			hs = append(hs, workItem{p: p, l: l, c: deliveryConsumer, message: x.message, kind: engine.FromPost, inboxIndex: i})
		}
	}
	return hs
}

// dropResult drops the result of an attempt: nobody will hear how it ended.
func (p *process) dropResult(x attemptResult) {
	p.world.receivers.allowRepeats(x)
}

// terminate ends the process. What was in memory is lost.
func (p *process) terminate() {
	for _, x := range p.inbox {
		p.world.receivers.allowRepeats(x)
	}
	p.checks, p.attempts, p.inbox = nil, nil, nil
}
