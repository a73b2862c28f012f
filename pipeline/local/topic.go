package local

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// topic is a named set of lanes.
type topic struct {
	name     string
	feedback bool
	// entry says that its handlers wait for room in every topic.
	entry bool
	// volatile says that its logs and positions are not in the store; ephemeral that nothing
	// is kept of it for groups that are still to come.
	volatile, ephemeral bool
	lanes               []*lane
	// kept is the size of what a topic without groups keeps, in bytes.
	kept atomic.Int64

	mu     sync.Mutex
	groups map[string]*consumer
}

// topic returns the topic of that name, which is made if it is new.
func (t *Transport) topic(name string) *topic {
	t.mu.RLock()
	tp := t.topics[name]
	t.mu.RUnlock()
	if tp != nil {
		return tp
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if tp := t.topics[name]; tp != nil {
		return tp
	}
	declared := t.cfg.Topics[name]
	tp = &topic{
		name: name, feedback: declared.Feedback, entry: declared.Entry, volatile: t.volatile || declared.Ephemeral,
		ephemeral: declared.Ephemeral, groups: map[string]*consumer{},
	}
	for i := range t.lanes {
		tp.lanes = append(tp.lanes, &lane{topic: tp, index: i, order: len(t.topics)*t.lanes + i})
	}
	t.topics[name] = tp
	return tp
}

// allTopics lists the topics by name.
func (t *Transport) allTopics() []*topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []*topic
	for _, name := range slices.Sorted(maps.Keys(t.topics)) {
		out = append(out, t.topics[name])
	}
	return out
}

// consumers lists the groups of tp.
func (tp *topic) consumers() []*consumer {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Collect(maps.Values(tp.groups))
}

// tryConsumers is consumers, unless somebody is at work on them.
func (tp *topic) tryConsumers() (groups []*consumer, ok bool) {
	if !tp.mu.TryLock() {
		return nil, false
	}
	defer tp.mu.Unlock()
	return slices.Collect(maps.Values(tp.groups)), true
}

// consumer returns group's share in a topic. A new group begins at the oldest message
// kept, and from then on messages are kept for it.
func (t *Transport) consumer(group string, tp *topic) (*consumer, error) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if c := tp.groups[group]; c != nil {
		return c, nil
	}
	c := newConsumer(t, group, tp)
	for i, l := range tp.lanes {
		l.mu.Lock()
		c.cursors[i].next = l.low
		c.cursors[i].join()
		l.mu.Unlock()
	}
	if !tp.volatile {
		if err := t.register(c); err != nil {
			c.leave()
			return nil, err
		}
	}
	tp.groups[group] = c
	return c, nil
}

// register stores where c begins.
func (t *Transport) register(c *consumer) error {
	b, err := t.db.NewBatch(false)
	if err != nil {
		return err
	}
	defer b.Close()
	for i, cur := range c.cursors {
		b.SetPosition(c.group, c.topic.name, i, cur.next)
	}
	return b.Commit(true)
}
