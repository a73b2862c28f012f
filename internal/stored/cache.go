package stored

import (
	"math"
	"sync"
	"time"
)

// unused is how long a value stays in a Cache without being used, and at most twice as long.
const unused = time.Minute

// evictionSample is how many values, chosen at random, are compared to find one that was not used for long.
const evictionSample = 5

// Cache holds values by key, with a limit in bytes. It removes values that nobody used for a minute or two. It
// is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int64

	mu      sync.Mutex
	entries map[K]*cached[V] // nil if there is none
	bytes   int64
	// uses counts the uses of all values. The last sweep set usesAtSweep to it.
	uses, usesAtSweep uint64
}

type cached[V any] struct {
	value V
	bytes int64
	used  uint64 // the number of the last use
}

// NewCache returns an empty Cache for values of so many bytes in total.
func NewCache[K comparable, V any](limit int64) *Cache[K, V] { return &Cache[K, V]{limit: limit} }

// Get returns the value of k. It returns false if there is none.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e == nil {
		return v, false
	}
	c.uses++
	e.used = c.uses
	return e.value, true
}

// Take removes the value of k and returns it. It returns false if there is none.
func (c *Cache[K, V]) Take(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e == nil {
		return v, false
	}
	c.remove(k, e)
	return e.value, true
}

// Put sets the value of k, which takes so many bytes. It removes other values where all of them would take more
// than the limit; v itself stays, however large it is.
func (c *Cache[K, V]) Put(k K, v V, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e != nil && c.bytes+bytes-e.bytes <= c.limit {
		c.uses++
		c.bytes += bytes - e.bytes
		*e = cached[V]{v, bytes, c.uses}
		return
	}
	if e != nil {
		c.remove(k, e)
	}
	if c.entries == nil {
		c.entries = make(map[K]*cached[V])
		time.AfterFunc(unused, c.sweep)
	}
	c.uses++
	c.bytes += bytes
	for c.bytes > c.limit && len(c.entries) > 0 {
		c.evict()
	}
	c.entries[k] = &cached[V]{v, bytes, c.uses}
}

// Delete removes the values with the keys for which which returns true.
func (c *Cache[K, V]) Delete(which func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.entries {
		if which(k) {
			c.remove(k, e)
		}
	}
}

// Bytes returns how many bytes the values take.
func (c *Cache[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

func (c *Cache[K, V]) remove(k K, e *cached[V]) {
	delete(c.entries, k)
	c.bytes -= e.bytes
}

// evict removes one of the values that were not used for longest.
func (c *Cache[K, V]) evict() {
	var oldest K
	used, n := uint64(math.MaxUint64), 0
	for k, e := range c.entries { // in random order
		if e.used < used {
			oldest, used = k, e.used
		}
		if n++; n == evictionSample {
			break
		}
	}
	c.remove(oldest, c.entries[oldest])
}

// sweep removes the values that were not used since the sweep before. It runs as long as there are any.
func (c *Cache[K, V]) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.entries {
		if e.used <= c.usesAtSweep {
			c.remove(k, e)
		}
	}
	c.usesAtSweep = c.uses
	if len(c.entries) == 0 {
		c.entries = nil // deleting entries does not shrink a map
		return
	}
	time.AfterFunc(unused, c.sweep)
}
