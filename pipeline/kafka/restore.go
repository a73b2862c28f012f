package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// maxCopyAge is how old the copy of a lane may be: the state topic keeps tombstones for 7 days.
const maxCopyAge = 6 * 24 * time.Hour

// takeLane makes this process the owner of lane: it fences the previous owner and restores the
// state of the lane.
func (t *Transport) takeLane(ctx context.Context, lane int) (*lease, error) {
	began := time.Now()
	n := newLease(t, lane)
	t.setLease(n)
	err := t.fenceAndRestore(ctx, n)
	if err == nil {
		err = n.loadState()
	}
	if err != nil {
		t.dropLease(n)
		if n.producer != nil {
			go func() { _ = n.producer.Close() }() // may wait for unreachable brokers
		}
		return nil, fmt.Errorf("taking lane %d: %w", lane, err)
	}
	t.counters.restores.Add(1)
	t.counters.restoreNanos.Add(uint64(time.Since(began)))
	return n, nil
}

// fenceAndRestore fences the previous owner of n's lane and updates the copy of the lane up to the fence.
func (t *Transport) fenceAndRestore(ctx context.Context, n *lease) error {
	var err error
	if n.producer, err = t.cfg.adminConfig().Fencer(ctx, n.lane); err != nil {
		return err
	}
	fence := changelog.Fence(t.cfg.Prefix+admin.TopicState, n.lane, n.nonce)
	if err := n.withTxnTimeout(ctx, func() error { return n.producer.Transact(fence) }); err != nil {
		return fmt.Errorf("fencing the previous owner: %w", err)
	}
	if err := t.restore(ctx, n, fence[0].Offset); err != nil {
		return fmt.Errorf("restoring its state: %w", err)
	}
	return nil
}

// restoreGroup is the group in whose name the state topic is read.
const restoreGroup = "\x00restorer"

// restore reads the state topic from the end of the copy of n's lane up to n's fence, which is
// at offset end.
func (t *Transport) restore(ctx context.Context, n *lease, end int64) error {
	from := t.copyEnd(n.lane)
	oldest := func(context.Context, int64) (int64, error) { return sarama.OffsetOldest, nil }
	pc, from, err := t.openPartition(ctx, consumer{Group: restoreGroup, Topic: admin.TopicState}, n.lane, from, oldest)
	if err != nil {
		return err
	}
	defer client.ClosePartition(pc)
	if from == sarama.OffsetOldest {
		if err := t.dropCopy(n); err != nil {
			return err
		}
	}
	r := &restoreProgress{from: max(from, 0), end: end}
	r.position.Store(r.from)
	t.slots[n.lane].restoring.Store(r)
	defer t.slots[n.lane].restoring.Store(nil)
	return changelog.Copy(ctx, pc, n.nonce, func(records map[string][]byte, read int, next int64) error {
		r.position.Store(next)
		t.counters.restoredRecords.Add(uint64(read))
		return t.writeCopy(n, records, next)
	})
}

// restoreProgress is how far a lane is restored, in offsets of the state topic.
type restoreProgress struct {
	from, end int64
	position  atomic.Int64
}

// percent is the part of the offsets that was read.
func (r *restoreProgress) percent() int64 {
	return 100 * (r.position.Load() - r.from) / max(r.end-r.from, 1)
}

// loadState reads the positions, the clock and the wakes of n's lane from its copy, and checks that it was made
// of these topics. It stores the topics for the next owner of the lane.
func (n *lease) loadState() error {
	own, err := changelog.ReadOwn(n.transport.stateCopy, n.lane)
	if err != nil {
		return err
	}
	topics := n.transport.knownTopics()
	if err := admin.CheckKnown(own.Topics, topics); err != nil {
		return failure.Broken(err)
	}
	if n.open.transportRecords[changelog.Key(changelog.KindTopics)], err = json.Marshal(topics); err != nil {
		return err
	}
	n.positions, n.clock = own.Positions, own.Clock
	if err := n.loadWakes(); err != nil {
		return err
	}
	cursors := n.allCursors()
	for _, c := range cursors {
		c.wakes.Start()
	}
	if n.clock.Sub(n.transport.cfg.Now()) > engine.SetBack {
		n.transport.log.Warn("the clock was set back: all that was scheduled is looked at once", "lane", n.lane, "from", n.clock, "to", n.transport.cfg.Now().UTC())
		for _, c := range cursors {
			c.wakes.WakeAll()
		}
	}
	return nil
}

// loadWakes reads the wakes, which groups of flow.Topic.Timed keep in their own state.
func (n *lease) loadWakes() error {
	groups, err := n.transport.stateCopy.HotGroups()
	if err != nil {
		return err
	}
	kept := make(map[consumer]string)
	for _, name := range groups {
		if group, topic, ok := engine.CutWakeGroup(name); ok {
			kept[consumer{Group: group, Topic: topic}] = name
		}
	}
	for topic, declared := range n.transport.declaredTopics() {
		for _, group := range declared.Timed {
			kept[consumer{Group: group, Topic: topic}] = group
		}
	}
	for who, in := range kept {
		if err := n.cursor(who).wakes.Restore(n.transport.stateCopy.Hot(in, n.lane, flow.WakeName)); err != nil {
			return err
		}
	}
	return nil
}

// copyRetention is how long the copy of a lane that another process owns is kept. A lane that comes
// back within that time is restored quickly.
const copyRetention = time.Hour

// dropStaleCopies deletes the copies of lanes that this process has not owned for copyRetention.
func (t *Transport) dropStaleCopies() error {
	for lane := range t.slots {
		if err := t.dropIfStale(lane); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transport) dropIfStale(lane int) error {
	s := &t.slots[lane]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return nil
	}
	own, err := changelog.ReadOwn(t.stateCopy, lane)
	if err == nil && (own.At.IsZero() || t.cfg.Now().Sub(own.At) < copyRetention) {
		return nil
	}
	return t.stateCopy.Write(false, func(b *store.Batch) error { return b.DropLane(lane) })
}

// copyEnd returns the offset of the state topic at which the copy of lane ends, or
// sarama.OffsetOldest if there is no copy that can be used: none of topics with this prefix, whose IDs
// loadState checks, none that can be read, or only an old one.
func (t *Transport) copyEnd(lane int) int64 {
	own, err := changelog.ReadOwn(t.stateCopy, lane)
	_, ours := own.Topics.IDs[t.cfg.Prefix+admin.TopicState]
	if err != nil || !ours || t.cfg.Now().Sub(own.At) > maxCopyAge {
		return sarama.OffsetOldest
	}
	return own.End
}

// writeCopy writes committed records to the copy of n's lane, which is then complete up to offset
// to. It fails if n is not the current lease of the lane.
func (t *Transport) writeCopy(n *lease, records map[string][]byte, to int64) error {
	return t.writeIfOwned(n, func(b *store.Batch) error {
		if err := changelog.Apply(b, n.lane, records); err != nil {
			return err
		}
		if to >= 0 {
			changelog.WriteEnd(b, n.lane, to, t.cfg.Now())
		}
		return nil
	})
}

// dropCopy deletes the copy of n's lane.
func (t *Transport) dropCopy(n *lease) error {
	return t.writeIfOwned(n, func(b *store.Batch) error { return b.DropLane(n.lane) })
}

// writeIfOwned commits the writes of f if n is the current lease of its lane.
func (t *Transport) writeIfOwned(n *lease, f func(b *store.Batch) error) error {
	l := &t.slots[n.lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != n {
		return errMoved
	}
	return t.stateCopy.Write(false, f)
}
