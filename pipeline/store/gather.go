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

// gatherBytes is how many bytes are gathered at most, and half of the largest batch that is.
const gatherBytes = 2 << 20

// gathered are the writes of batches that were applied and are not in Pebble yet. They are written in
// one batch, so that a value that is replaced soon is written once, a message that is soon handled is
// not written at all, and one write to the disk serves all that wait for it. They are written when a
// batch is to be durable, before a scan of keys of their kind, and at the latest Options.Gather after the first of
// them. So a crash loses the last batches only, each of them whole, as it does with Pebble's own
// unsynced writes.
type gathered struct {
	mu     sync.RWMutex
	values map[string][]byte // nil for a deleted key
	// ranges were deleted before values were set.
	ranges []keyRange
	// kinds are the first bytes of the keys in values and ranges: the kinds of keys, or kindSpace.
	kinds [256]bool
	bytes int
	timer *time.Timer
	// applied counts the batches that were applied.
	applied uint64
}

type keyRange struct{ from, to []byte }

func (r keyRange) holds(key []byte) bool {
	return bytes.Compare(r.from, key) <= 0 && bytes.Compare(key, r.to) < 0
}

// get returns the gathered value of key. known is false if only Pebble has it.
func (g *gathered) get(key []byte) (value []byte, ok, known bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if v, known := g.values[string(key)]; known {
		return append(make([]byte, 0, len(v)), v...), v != nil, true
	}
	return nil, false, slices.ContainsFunc(g.ranges, func(r keyRange) bool { return r.holds(key) })
}

// gather adds b. The caller holds g.mu.
func (c *core) gather(b *Batch) {
	g := &c.gathered
	if g.values == nil {
		g.values = make(map[string][]byte)
		g.timer = time.AfterFunc(c.every, c.writeLater)
	}
	g.bytes += b.bytes
	for _, w := range b.writes {
		g.kinds[w.key[0]] = true
		if w.end != nil {
			g.remove(keyRange{w.key, w.end})
			continue
		}
		g.values[string(w.key)] = w.value
	}
}

// remove deletes the keys of r.
func (g *gathered) remove(r keyRange) {
	maps.DeleteFunc(g.values, func(k string, _ []byte) bool { return r.holds([]byte(k)) })
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
	g := &c.gathered
	if c.every == 0 {
		if err := c.commit(b.pebble()); err != nil { // it may wait for the disk; who reads must not
			return 0, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.applied++
		return g.applied, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	large := b.bytes > gatherBytes/2
	if large || g.bytes+b.bytes > gatherBytes {
		if err := c.writeGathered(); err != nil {
			return 0, err
		}
	}
	if !large {
		c.gather(b)
	} else if err := c.commit(b.pebble()); err != nil {
		return 0, err
	}
	g.applied++
	return g.applied, nil
}

// commit makes b visible and closes it.
func (c *core) commit(b *pebble.Batch) error {
	defer b.Close()
	return b.Commit(pebble.NoSync)
}

// sync makes the first n batches durable that were applied. While one write to the disk is under way,
// those that wait for the next one gather, and one of them makes it for all.
func (c *core) sync(n uint64) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	if c.synced >= n {
		return nil
	}
	c.gathered.mu.Lock()
	applied := c.gathered.applied
	err := c.writeGathered()
	c.gathered.mu.Unlock()
	if err == nil {
		err = c.pebble.LogData(nil, pebble.Sync) // the log is in order: with this, all before is durable
	}
	if err == nil {
		c.synced = applied
	}
	return err
}

// settleGathered writes the gathered commits to Pebble before a scan of the keys that begin with prefix.
// It does nothing when no gathered commit has a key of that kind, since the scan would not see it. The
// caller keeps the store open.
func (c *core) settleGathered(prefix []byte) error {
	g := &c.gathered
	g.mu.RLock()
	seen := g.values != nil && (len(prefix) == 0 || g.kinds[prefix[0]])
	g.mu.RUnlock()
	if !seen {
		return nil
	}
	c.gathered.mu.Lock()
	defer c.gathered.mu.Unlock()
	return c.writeGathered()
}

// writeLater makes what was gathered durable, when its time has come.
func (c *core) writeLater() {
	if c.use() != nil {
		return // Close writes it
	}
	defer c.done()
	if err := c.sync(math.MaxUint64); err != nil {
		c.log.Errorf("writing what was gathered: %v", err) // the next commit tries again, and fails with it
	}
}

// writeGathered is settleGathered for a caller that holds the lock.
func (c *core) writeGathered() error {
	g := &c.gathered
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
	if err := c.commit(b); err != nil {
		return err
	}
	g.timer.Stop()
	g.values, g.ranges, g.bytes, g.timer = nil, nil, 0, nil
	g.kinds = [256]bool{}
	return nil
}
