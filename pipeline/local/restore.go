package local

import (
	"maps"
	"slices"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

// restore loads topics and groups from the store, and declares those of the configuration.
func (t *Transport) restore() error {
	positions, err := t.db.Positions()
	if err != nil {
		return err
	}
	if positions, err = t.dropUndeclared(positions); err != nil {
		return err
	}
	names, err := t.db.Topics()
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, l := range t.topic(name).lanes {
			if l.low, l.head, err = t.db.Bounds(name, l.index); err != nil {
				return err
			}
			if l.topic.volatile && l.head > l.low {
				// The topic was not ephemeral before.
				if err := t.trimStored(l, l.head); err != nil {
					return err
				}
				l.low = l.head
			}
		}
	}
	for _, p := range positions {
		if p.Lane < t.lanes && !t.topic(p.Topic).volatile {
			t.restorePosition(p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.cfg.Topics)) {
		for _, g := range t.cfg.Topics[name].Groups {
			if !t.cfg.Topics[name].ReadBy(g) {
				continue
			}
			if _, err := t.consumer(g, t.topic(name)); err != nil {
				return err
			}
		}
	}
	for _, tp := range t.topics {
		if err := t.restoreTopic(tp); err != nil {
			return err
		}
	}
	return nil
}

// dropUndeclared deletes the groups that the configuration does not declare, if it declares
// any. It returns the positions of the other groups.
func (t *Transport) dropUndeclared(positions []store.Position) ([]store.Position, error) {
	if len(t.cfg.Topics) == 0 || t.cfg.KeepUndeclared {
		return positions, nil
	}
	groups := map[string]bool{}
	for _, tp := range t.cfg.Topics {
		for _, g := range tp.Groups {
			groups[g] = true
		}
	}
	dropped := map[engine.Consumer]bool{}
	err := t.db.Write(true, func(b *store.Batch) error {
		positions = slices.DeleteFunc(positions, func(p store.Position) bool {
			if tp := t.cfg.Topics[p.Topic]; slices.Contains(tp.Groups, p.Group) && tp.ReadBy(p.Group) {
				return false
			}
			if who := (engine.Consumer{Group: p.Group, Topic: p.Topic}); !dropped[who] {
				dropped[who] = true
				t.log.Warn("dropping a consumer group that is not declared any more", "group", p.Group, "topic", p.Topic)
				b.DropPositions(p.Group, p.Topic)
				b.DropState(engine.WakeGroup(p.Group, p.Topic))
				if !groups[p.Group] {
					b.DropState(p.Group)
				}
			}
			return true
		})
		return nil
	})
	return positions, err
}

// restorePosition restores the position of a group.
func (t *Transport) restorePosition(p store.Position) {
	tp := t.topic(p.Topic)
	c := tp.groups[p.Group]
	if c == nil {
		c = newConsumer(t, p.Group, tp)
		c.inactive = t.cfg.KeepUndeclared && !slices.Contains(tp.declared.Groups, p.Group)
		t.addConsumer(c)
	}
	l := tp.lanes[p.Lane]
	c.cursors[p.Lane].next = p.Offset
	l.head = max(l.head, p.Offset)
}

// restoreTopic trims messages that all groups have consumed. It finds the kept messages of a
// topic without groups, and the next wakes of the groups of other topics.
func (t *Transport) restoreTopic(tp *topic) error {
	for _, l := range tp.lanes {
		if m := l.slowestPosition(); m > l.low {
			if err := t.trimStored(l, m); err != nil {
				return err
			}
			l.low = m
		}
		if len(l.cursors) == 0 {
			if err := t.restoreKept(l); err != nil {
				return err
			}
		}
		for _, cur := range l.cursors {
			if err := cur.wakes.Restore(t.db.Hot(cur.consumer.wakeGroup(), l.index, flow.WakeName)); err != nil {
				return err
			}
			for _, link := range cur.links {
				if err := link.Wakes.Restore(t.db.Hot(engine.WakeGroup(link.Group, link.Topic), l.index, flow.WakeName)); err != nil {
					return err
				}
			}
		}
	}
	t.applyTopicRetention(tp)
	return nil
}

// restoreKept finds the kept messages of a lane without groups.
func (t *Transport) restoreKept(l *laneLog) error {
	end := l.head
	for from := l.low; from < end; {
		page, err := t.db.ReadLog(l.topic.name, l.index, from, end, readChunkBytes)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, e := range page {
			l.head = e.Offset + 1
			l.recordKept(e.Record.Time, e.Record.Size())
			from = l.head
		}
	}
	l.head = end
	return nil
}
