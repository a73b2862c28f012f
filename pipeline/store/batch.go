package store

import (
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Batch collects writes that are committed together. It must not be used by two goroutines at
// the same time, and must be closed. A successful commit closes it.
type Batch struct {
	d   *DB
	b   *pebble.Batch
	rec []byte
}

// NewBatch returns an empty batch.
func (d *DB) NewBatch() (*Batch, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	return &Batch{d: d, b: d.pebble.NewBatch()}, nil
}

// Write commits what f writes, if it writes anything and returns nil.
func (d *DB) Write(sync bool, f func(b *Batch) error) error {
	b, err := d.NewBatch()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := f(b); err != nil || b.Empty() {
		return err
	}
	return b.Commit(sync)
}

// Close drops writes that were not committed. A second Close does nothing.
func (b *Batch) Close() error {
	if b.b == nil {
		return nil
	}
	err := b.b.Close()
	b.b = nil
	b.d.done()
	return err
}

// Empty reports whether nothing was written to b.
func (b *Batch) Empty() bool { return b.b == nil || b.b.Empty() }

// Pebble's own batches return no errors before they are committed.
func (b *Batch) set(k, v []byte)             { _ = b.b.Set(k, v, nil) }
func (b *Batch) delete(k []byte)             { _ = b.b.Delete(k, nil) }
func (b *Batch) deleteRange(from, to []byte) { _ = b.b.DeleteRange(from, to, nil) }

// Append writes r at offset to the log of a topic's lane.
func (b *Batch) Append(topic string, lane int, offset uint64, r Record) {
	b.rec = appendRecord(b.rec[:0], r)
	b.set(b.d.logKey(topic, lane, offset), b.rec)
}

// Trim removes the offsets from <= offset < to from the log of a topic's lane, and stores that
// the log begins at to.
func (b *Batch) Trim(topic string, lane int, from, to uint64) {
	b.deleteRange(b.d.logKey(topic, lane, from), b.d.logKey(topic, lane, to))
	b.set(b.d.beginKey(topic, lane), binary.BigEndian.AppendUint64(nil, to))
}

// SetPosition makes offset the next one that group consumes.
func (b *Batch) SetPosition(group, topic string, lane int, offset uint64) {
	b.set(b.d.positionKey(group, topic, lane), binary.BigEndian.AppendUint64(nil, offset))
}

// SetState stores value under name. Group, lane, key and name are any strings.
func (b *Batch) SetState(group string, lane int, key, name string, value []byte) {
	b.set(b.d.stateKey(group, lane, key, name), value)
}

// DeleteState removes name.
func (b *Batch) DeleteState(group string, lane int, key, name string) {
	b.delete(b.d.stateKey(group, lane, key, name))
}

// SetLastSeen stores at as the latest time of the clock.
func (b *Batch) SetLastSeen(at time.Time) {
	b.set(b.d.stringsOf(kindLastSeen), binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// DropPositions removes the positions that group has in topic.
func (b *Batch) DropPositions(group, topic string) {
	p := b.d.stringsOf(kindPosition, group, topic)
	b.deleteRange(p, after(p))
}

// DropState removes all state of group.
func (b *Batch) DropState(group string) {
	for _, kind := range stateKinds {
		p := b.d.stringsOf(kind, group)
		b.deleteRange(p, after(p))
	}
}

// Commit makes the writes of b visible, and with sync durable, before it returns.
func (b *Batch) Commit(sync bool) error {
	wait, err := b.Apply(sync)
	if err != nil {
		return err
	}
	if wait != nil {
		wait()
	}
	return b.Close()
}

// Apply makes the writes of b visible. With sync they are durable when wait returns; if that is
// impossible the process ends. Wait is nil if there is nothing to wait for: without sync, and in
// memory. Batches become durable in the order in which they were applied. The caller closes b after
// wait.
func (b *Batch) Apply(sync bool) (wait func(), err error) {
	if b.b == nil {
		return nil, ErrClosed
	}
	n, err := b.d.apply(b.b)
	if err != nil || !sync || !b.d.durable {
		return nil, err
	}
	return func() {
		if err := b.d.sync(n); err != nil {
			// The writes are visible but will never be durable. Effects of them would be
			// repeated after a restart.
			b.d.log.Fatalf("%v", err)
		}
	}, nil
}

// DropLane removes the states of a lane.
func (b *Batch) DropLane(lane int) error {
	for _, kind := range stateKinds {
		groups, err := b.d.firstStrings(b.d.stringsOf(kind))
		if err != nil {
			return err
		}
		for _, group := range groups {
			p := b.d.keyOf(kind, lane, group)
			b.deleteRange(p, after(p))
		}
	}
	return nil
}
