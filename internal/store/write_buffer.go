package store

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maxBufferBytes is how many bytes are gathered at most, and half of the largest batch that is.
const maxBufferBytes = 2 << 20

// writeBuffer holds the writes of batches that were applied and are not in Pebble yet. They are written in
// one batch, so that a value that is replaced soon is written once, a message that is soon handled is
// not written at all, and one write to the disk serves all that wait for it. They are written when a
// batch is to be durable, before a scan of keys of their kind, and at the latest Options.Gather after the first of
// them. So a crash loses the last batches only, each of them whole, as it does with Pebble's own
// unsynced writes.
type writeBuffer struct {
	mu     sync.RWMutex
	values map[string][]byte // nil for a deleted key
	// ranges were deleted before values were set.
	ranges []keyRange
	// kinds are the first bytes of the keys in values and ranges: the kinds of keys, or kindNamespace.
	kinds [256]bool
	bytes int
	timer *time.Timer
	// appliedBatches counts the batches that were applied.
	appliedBatches uint64
}

type keyRange struct{ from, to []byte }

func (r keyRange) contains(key []byte) bool {
	return bytes.Compare(r.from, key) <= 0 && bytes.Compare(key, r.to) < 0
}

// get returns the gathered value of key. known is false if only Pebble has it.
func (g *writeBuffer) get(key []byte) (value []byte, ok, known bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if v, known := g.values[string(key)]; known {
		return append(make([]byte, 0, len(v)), v...), v != nil, true
	}
	return nil, false, slices.ContainsFunc(g.ranges, func(r keyRange) bool { return r.contains(key) })
}

// addToBuffer adds b. The caller holds g.mu.
func (c *core) addToBuffer(b *Batch) {
	g := &c.buffer
	if g.values == nil {
		g.values = make(map[string][]byte)
		g.timer = time.AfterFunc(c.flushInterval, c.flushOnTimer)
	}
	g.bytes += b.bytes
	for _, w := range b.writes {
		g.kinds[w.key[0]] = true
		if w.rangeEnd != nil {
			g.deleteRange(keyRange{w.key, w.rangeEnd})
			continue
		}
		g.values[string(w.key)] = w.value
	}
}

// deleteRange deletes the keys of r.
func (g *writeBuffer) deleteRange(r keyRange) {
	maps.DeleteFunc(g.values, func(k string, _ []byte) bool { return r.contains([]byte(k)) })
	for i := range g.ranges {
		if bytes.Equal(g.ranges[i].to, r.from) {
			g.ranges[i].to = r.to // the log of a lane is trimmed from where it was trimmed before
			return
		}
	}
	g.ranges = append(g.ranges, r)
}

// apply makes b visible. It returns its number, for sync.
func (c *core) apply(b *Batch) (n uint64, err error) {
	g := &c.buffer
	if c.flushInterval == 0 {
		if err := c.commitBatch(b.pebbleBatch()); err != nil { // it may wait for the disk; who reads must not
			return 0, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.appliedBatches++
		return g.appliedBatches, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	large := b.bytes > maxBufferBytes/2
	if large || g.bytes+b.bytes > maxBufferBytes {
		if err := c.flushBufferLocked(); err != nil {
			return 0, err
		}
	}
	if !large {
		c.addToBuffer(b)
	} else if err := c.commitBatch(b.pebbleBatch()); err != nil {
		return 0, err
	}
	g.appliedBatches++
	return g.appliedBatches, nil
}

// commitBatch makes b visible and closes it.
func (c *core) commitBatch(b *pebble.Batch) error {
	defer b.Close()
	return b.Commit(pebble.NoSync)
}

// syncBatches makes the first n batches durable that were applied. While one write to the disk is under way,
// those that wait for the next one gather, and one of them makes it for all.
func (c *core) syncBatches(n uint64) error {
	c.syncMu.Lock()
	defer c.syncMu.Unlock()
	if c.syncedBatches >= n {
		return nil
	}
	c.buffer.mu.Lock()
	applied := c.buffer.appliedBatches
	err := c.flushBufferLocked()
	c.buffer.mu.Unlock()
	if err == nil {
		err = c.pebble.LogData(nil, pebble.Sync) // the log is in order: with this, all before is durable
	}
	if err == nil {
		c.syncedBatches = applied
	}
	return err
}

// flushBuffer writes the gathered commits to Pebble before a scan of the keys that begin with prefix.
// It does nothing when no gathered commit has a key of that kind, since the scan would not see it. The
// caller keeps the store open.
func (c *core) flushBuffer(prefix []byte) error {
	g := &c.buffer
	g.mu.RLock()
	seen := g.values != nil && (len(prefix) == 0 || g.kinds[prefix[0]])
	g.mu.RUnlock()
	if !seen {
		return nil
	}
	c.buffer.mu.Lock()
	defer c.buffer.mu.Unlock()
	return c.flushBufferLocked()
}

// flushOnTimer makes what was gathered durable, when its time has come.
func (c *core) flushOnTimer() {
	if c.acquire() != nil {
		return // Close writes it
	}
	defer c.release()
	if err := c.syncBatches(math.MaxUint64); err != nil {
		c.log.Errorf("writing what was gathered: %v", err) // the next commit tries again, and fails with it
	}
}

// flushBufferLocked is flushBuffer for a caller that holds the lock.
func (c *core) flushBufferLocked() error {
	g := &c.buffer
	if g.values == nil {
		return nil
	}
	b := c.pebble.NewBatchWithSize(g.bytes + g.bytes/4)
	for _, r := range g.ranges {
		_ = b.DeleteRange(r.from, r.to, nil)
	}
	for k, v := range g.values {
		if v == nil {
			_ = b.Delete([]byte(k), nil)
		} else {
			_ = b.Set([]byte(k), v, nil)
		}
	}
	if err := c.commitBatch(b); err != nil {
		return err
	}
	g.timer.Stop()
	g.values, g.ranges, g.bytes, g.timer = nil, nil, 0, nil
	g.kinds = [256]bool{}
	return nil
}
