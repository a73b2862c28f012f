package store

import (
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Batch collects writes that are committed together. It must not be used by two goroutines at
// the same time, and must be closed. A successful commit closes it.
type Batch struct {
	d      *DB
	writes []operation
	bytes  int
	over   bool // committed or closed
}

// operation sets key to value, or deletes it if value is nil. With end it deletes the keys from key on
// and before end.
type operation struct{ key, value, end []byte }

// usual is how many operations most batches have at most.
const usual = 4

// NewBatch returns an empty batch.
func (d *DB) NewBatch() (*Batch, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	return &Batch{d: d}, nil
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
func (b *Batch) Close() {
	if !b.over {
		b.over, b.writes = true, nil
		b.d.done()
	}
}

// Empty reports whether nothing was written to b.
func (b *Batch) Empty() bool { return len(b.writes) == 0 }

// set, delete and deleteRange keep the slices that they get.
func (b *Batch) set(k, v []byte)             { b.add(operation{key: k, value: v}) }
func (b *Batch) delete(k []byte)             { b.add(operation{key: k}) }
func (b *Batch) deleteRange(from, to []byte) { b.add(operation{key: from, end: to}) }

func (b *Batch) add(w operation) {
	if b.writes == nil {
		b.writes = make([]operation, 0, usual)
	}
	b.writes = append(b.writes, w)
	b.bytes += len(w.key) + len(w.value) + len(w.end)
}

// pebble returns the writes as a batch of Pebble, which returns no errors before it is committed.
func (b *Batch) pebble() *pebble.Batch {
	p := b.d.pebble.NewBatchWithSize(b.bytes + b.bytes/4)
	for _, w := range b.writes {
		switch {
		case w.end != nil:
			_ = p.DeleteRange(w.key, w.end, nil)
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
	b.set(b.d.beginKey(topic, lane), binary.BigEndian.AppendUint64(nil, to))
}

// SetPosition makes offset the next one that group consumes.
func (b *Batch) SetPosition(group, topic string, lane int, offset uint64) {
	b.set(b.d.positionKey(group, topic, lane), binary.BigEndian.AppendUint64(nil, offset))
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
	b.Close()
	return nil
}

// Apply makes the writes of b visible. With sync they are durable when wait returns; if that is
// impossible the process ends. Wait is nil if there is nothing to wait for: without sync, and in
// memory. Batches become durable in the order in which they were applied. The caller closes b after
// wait.
func (b *Batch) Apply(sync bool) (wait func(), err error) {
	if b.over {
		return nil, ErrClosed
	}
	n, err := b.d.apply(b)
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
