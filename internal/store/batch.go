package store

import (
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Batch collects writes that are committed together. It must not be used by two goroutines at
// the same time, nor after the function that got it returned.
type Batch struct {
	d      *DB
	writes []operation
	bytes  int
}

// operation sets key to value, or deletes it if value is nil. With rangeEnd it deletes the keys from key on
// and before rangeEnd.
type operation struct{ key, value, rangeEnd []byte }

// typicalOperations is how many operations most batches have at most.
const typicalOperations = 4

// Write commits what f writes, if it writes anything and returns nil. It is visible, and with sync
// durable, when Write returns.
func (d *DB) Write(sync bool, f func(b *Batch) error) error {
	wait, err := d.Apply(sync, f)
	if wait != nil {
		wait()
	}
	return err
}

// Apply is a Write that does not wait for the disk. With sync the writes are durable when wait
// returns; if that is impossible the process ends. Wait must be called once. It is nil if there is
// nothing to wait for: without sync, and in memory. Writes become durable in the order in which they
// were applied.
func (d *DB) Apply(sync bool, f func(b *Batch) error) (wait func(), err error) {
	b := &Batch{d: d}
	if err := f(b); err != nil || b.Empty() {
		return nil, err
	}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	n, err := d.apply(b)
	if err != nil || !sync || d.disk == nil {
		d.release()
		return nil, err
	}
	return func() {
		defer d.release()
		if err := d.syncBatches(n); err != nil {
			// The writes are visible but will never be durable. Effects of them would be
			// repeated after a restart.
			d.log.Fatalf("%v", err)
		}
	}, nil
}

// Empty reports whether nothing was written to b.
func (b *Batch) Empty() bool { return len(b.writes) == 0 }

// set, delete and deleteRange keep the slices that they get.
func (b *Batch) set(k, v []byte)             { b.add(operation{key: k, value: v}) }
func (b *Batch) delete(k []byte)             { b.add(operation{key: k}) }
func (b *Batch) deleteRange(from, to []byte) { b.add(operation{key: from, rangeEnd: to}) }

func (b *Batch) add(w operation) {
	if b.writes == nil {
		b.writes = make([]operation, 0, typicalOperations)
	}
	b.writes = append(b.writes, w)
	b.bytes += len(w.key) + len(w.value) + len(w.rangeEnd)
}

// pebbleBatch returns the writes as a batch of Pebble, which returns no errors before it is committed.
func (b *Batch) pebbleBatch() *pebble.Batch {
	p := b.d.pebble.NewBatchWithSize(b.bytes + b.bytes/4)
	for _, w := range b.writes {
		switch {
		case w.rangeEnd != nil:
			_ = p.DeleteRange(w.key, w.rangeEnd, nil)
		case w.value == nil:
			_ = p.Delete(w.key, nil)
		default:
			_ = p.Set(w.key, w.value, nil)
		}
	}
	return p
}

// Append writes r at offset to the log of a topic's lane.
func (b *Batch) Append(topic string, lane int, offset uint64, r Record) {
	b.set(b.d.logKey(topic, lane, offset), appendRecord(make([]byte, 0, len(r.Payload)+512), r))
}

// Trim removes the offsets from <= offset < to from the log of a topic's lane, and stores that
// the log begins at to.
func (b *Batch) Trim(topic string, lane int, from, to uint64) {
	b.deleteRange(b.d.logKey(topic, lane, from), b.d.logKey(topic, lane, to))
	b.set(b.d.logStartKey(topic, lane), binary.BigEndian.AppendUint64(nil, to))
}

// SetPosition makes offset the next one that group consumes.
func (b *Batch) SetPosition(group, topic string, lane int, offset uint64) {
	b.set(b.d.laneKey(kindPosition, lane, group, topic), binary.BigEndian.AppendUint64(nil, offset))
}

// SetState stores value under name. Group, lane, key and name are any strings.
func (b *Batch) SetState(group string, lane int, key, name string, value []byte) {
	b.set(b.d.stateKey(group, lane, key, name), append(make([]byte, 0, len(value)), value...))
}

// DeleteState removes name.
func (b *Batch) DeleteState(group string, lane int, key, name string) {
	b.delete(b.d.stateKey(group, lane, key, name))
}

// SetLastSeen stores at as the latest time of the clock.
func (b *Batch) SetLastSeen(at time.Time) {
	b.set(b.d.keyPrefix(kindLastSeen), binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// DropPositions removes the positions that group has in topic.
func (b *Batch) DropPositions(group, topic string) {
	p := b.d.keyPrefix(kindPosition, group, topic)
	b.deleteRange(p, prefixEnd(p))
}

// DropState removes all state of group.
func (b *Batch) DropState(group string) {
	for _, kind := range stateKinds {
		p := b.d.keyPrefix(kind, group)
		b.deleteRange(p, prefixEnd(p))
	}
}

// DropLane removes the states of a lane.
func (b *Batch) DropLane(lane int) error {
	for _, kind := range stateKinds {
		groups, err := b.d.distinctStrings(b.d.keyPrefix(kind))
		if err != nil {
			return err
		}
		for _, group := range groups {
			p := b.d.laneKey(kind, lane, group)
			b.deleteRange(p, prefixEnd(p))
		}
	}
	return nil
}
