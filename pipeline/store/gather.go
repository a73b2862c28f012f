package store

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// gatherBytes is how many bytes are gathered at most, and half of the largest batch that is.
const gatherBytes = 2 << 20

// gathered are the writes of batches that were committed without sync and are not in Pebble yet.
// They are written in one batch, so that a value that is replaced soon is written once, and a
// message that is soon handled is not written at all. They are written before every other batch
// and before every scan, and at the latest Options.Gather after the first of them. So a crash
// loses the last batches only, each of them whole, as it does with Pebble's own unsynced writes.
type gathered struct {
	mu     sync.RWMutex
	values map[string][]byte // nil for a deleted key
	// ranges were deleted before values were set.
	ranges []keyRange
	bytes  int
	timer  *time.Timer
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
func (c *core) gather(b *pebble.Batch) error {
	g := &c.gathered
	for r := b.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		g.bytes += len(key) + len(value)
		switch kind {
		case pebble.InternalKeyKindSet:
			g.values[string(key)] = append(make([]byte, 0, len(value)), value...)
		case pebble.InternalKeyKindDelete:
			g.values[string(key)] = nil
		case pebble.InternalKeyKindRangeDelete:
			g.remove(keyRange{bytes.Clone(key), bytes.Clone(value)})
		default:
			return errors.New("store: a batch has a write of an unknown kind")
		}
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

// apply makes b visible.
func (c *core) apply(b *pebble.Batch, sync bool) error {
	if c.every == 0 {
		return c.applyNow(b, sync)
	}
	g := &c.gathered
	g.mu.Lock()
	defer g.mu.Unlock()
	if sync || b.Len() > gatherBytes/2 {
		if err := c.writeGathered(); err != nil {
			return err
		}
		return c.applyNow(b, sync)
	}
	if g.bytes+b.Len() > gatherBytes {
		if err := c.writeGathered(); err != nil {
			return err
		}
	}
	if g.values == nil {
		g.values = make(map[string][]byte)
		g.timer = time.AfterFunc(c.every, c.writeLater)
	}
	return c.gather(b)
}

func (c *core) applyNow(b *pebble.Batch, sync bool) error {
	if sync {
		return c.pebble.ApplyNoSyncWait(b, pebble.Sync)
	}
	return b.Commit(pebble.NoSync)
}

// settleGathered writes what was gathered to Pebble. The caller keeps the store open.
func (c *core) settleGathered() error {
	c.gathered.mu.RLock()
	none := c.gathered.values == nil
	c.gathered.mu.RUnlock()
	if none {
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
	err := c.settleGathered()
	if err == nil {
		err = c.pebble.LogData(nil, pebble.Sync) // Pebble keeps unsynced writes back
	}
	if err != nil {
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
	defer b.Close()
	for _, r := range g.ranges {
		if err := b.DeleteRange(r.from, r.to, nil); err != nil {
			return err
		}
	}
	for k, v := range g.values {
		var err error
		if v == nil {
			err = b.Delete([]byte(k), nil)
		} else {
			err = b.Set([]byte(k), v, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	g.timer.Stop()
	g.values, g.ranges, g.bytes, g.timer = nil, nil, 0, nil
	return nil
}
