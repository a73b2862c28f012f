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

// copyOf returns a second life of w, as a backup has that is started on: it has all that
// was committed, another name, and goes on by other chance.
func (w *world) copyOf(name string) *world {
	c := *w
	c.rng = rand.New(rand.NewPCG(w.cfg.Seed, 0xc0b1))
	c.t = w.t.copyOf(name)
	c.trace = slices.Clone(w.trace)
	c.sites = nil
	for _, s := range w.sites {
		twin := *s
		twin.calm = maps.Clone(s.calm)
		c.sites = append(c.sites, &twin)
	}
	r := *w.receivers
	r.got = slices.Clone(r.got)
	r.unconfirmed, r.excused = maps.Clone(r.unconfirmed), maps.Clone(r.excused)
	c.receivers = &r
	c.late, c.seen = slices.Clone(w.late), slices.Clone(w.seen)
	c.incarnations, c.subscriptionOf = maps.Clone(w.incarnations), maps.Clone(w.subscriptionOf)
	c.dropped = maps.Clone(w.dropped)
	p := &process{w: &c, lanes: make(map[int]*lane)}
	for _, l := range w.processes[0].owned() {
		twin := l.copy(c.t.undo)
		twin.by, p.lanes[l.id] = p, twin
	}
	c.processes = []*process{p}
	c.clock = c.newClock()
	c.clock.See(w.now)
	c.crash(p, "it is started on a copy")
	c.steps++
	return &c
}

// copyOf returns a copy of t in a store with another name.
func (t *transport) copyOf(name string) *transport {
	c := newTransport(t.lanes)
	c.store = name
	for topic, lanes := range t.logs {
		for _, log := range lanes {
			c.logs[topic] = append(c.logs[topic], slices.Clone(log))
		}
	}
	c.undo = &undoing{}
	for topic, first := range t.first {
		c.first[topic] = slices.Clone(first)
	}
	return c
}

// compareLives checks that no notification of one life has the ID of one of the other that
// says something else.
func compareLives(a, b *world) error {
	said := make(map[string]flow.Addressed)
	for _, w := range []*world{a, b} {
		says := make(map[string]flow.Addressed)
		for id, n := range w.byID {
			says[id] = n.Addressed
		}
		for _, g := range w.receivers.got {
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
	if err := w.until(cfg.Steps / 2); err != nil {
		return fail(w, err)
	}
	copied := w.copyOf("copy")
	for _, life := range []*world{w, copied} {
		if err := life.run(cfg.Steps); err != nil {
			return fail(life, err)
		}
	}
	if err := compareLives(w, copied); err != nil {
		return fail(copied, err)
	}
	return w.stats, nil
}
