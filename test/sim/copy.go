package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
)

// copyAs returns a copy of w, as if a backup of its store were started. It has all that
// was committed, another name, and other random numbers from now on.
func (w *world) copyAs(name string) *world {
	c := *w
	c.rng = rand.New(rand.NewPCG(w.cfg.Seed, 0xc0b1))
	c.transport = w.transport.copyAs(name)
	c.trace = slices.Clone(w.trace)
	c.sites = nil
	for _, s := range w.sites {
		twin := *s
		twin.finalChecks = maps.Clone(s.finalChecks)
		c.sites = append(c.sites, &twin)
	}
	r := *w.receivers
	r.receptions = slices.Clone(r.receptions)
	r.unconfirmed, r.allowedRepeats = maps.Clone(r.unconfirmed), maps.Clone(r.allowedRepeats)
	c.receivers = &r
	c.lateOutcomes, c.observations = slices.Clone(w.lateOutcomes), slices.Clone(w.observations)
	c.incarnations, c.subscriptionOf = maps.Clone(w.incarnations), maps.Clone(w.subscriptionOf)
	c.droppedPages = maps.Clone(w.droppedPages)
	p := &process{world: &c, lanes: make(map[int]*lane)}
	for _, l := range w.processes[0].ownedLanes() {
		twin := l.copy(c.transport.undo)
		twin.owner, p.lanes[l.id] = p, twin
	}
	c.processes = []*process{p}
	c.clock = c.newClock()
	c.clock.See(w.now)
	c.crash(p, "it is started on a copy")
	c.steps++
	return &c
}

// copyAs returns a copy of t in a store with another name.
func (t *transport) copyAs(name string) *transport {
	c := newTransport(t.lanes)
	c.storeName = name
	for topic, lanes := range t.logs {
		for _, log := range lanes {
			c.logs[topic] = append(c.logs[topic], slices.Clone(log))
		}
	}
	c.undo = &undoLog{}
	for topic, first := range t.firstKept {
		c.firstKept[topic] = slices.Clone(first)
	}
	return c
}

// compareNotificationIDs checks that two notifications with one ID, in a run and in its copy, say the same.
func compareNotificationIDs(a, b *world) error {
	said := make(map[string]flow.Addressed)
	for _, w := range []*world{a, b} {
		says := make(map[string]flow.Addressed)
		for id, n := range w.notificationsByID {
			says[id] = n.Addressed
		}
		for _, g := range w.receivers.receptions {
			says["taken "+g.notification.ID] = flow.Addressed{Notification: g.notification}
		}
		for id, n := range says {
			if other, ok := said[id]; ok && !reflect.DeepEqual(other, n) {
				return fmt.Errorf("two lives say under %s: %+v and %+v", id, other, n)
			}
			said[id] = n
		}
	}
	return nil
}

// RunCopied runs one seed, and from some step on a copy of it too, and compares both with
// the oracle and with each other.
func RunCopied(cfg Config) (Stats, error) {
	cfg.Steps, cfg.Processes = cmp.Or(cfg.Steps, 700), 1
	w := newWorld(cfg)
	fail := func(w *world, err error) (Stats, error) { return w.stats, &Failure{cfg.Seed, err, w.trace} }
	if err := w.runSteps(cfg.Steps / 2); err != nil {
		return fail(w, err)
	}
	copied := w.copyAs("copy")
	for _, life := range []*world{w, copied} {
		if err := life.run(cfg.Steps); err != nil {
			return fail(life, err)
		}
	}
	if err := compareNotificationIDs(w, copied); err != nil {
		return fail(copied, err)
	}
	return w.stats, nil
}
