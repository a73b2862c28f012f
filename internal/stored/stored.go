// Package stored is for values that a stage keeps in its state: it encodes them, keeps them in memory as
// they were stored last, and remembers which of the work that they tell of was begun by this process.
//
// A value is one byte with the format of the stage, and CBOR (RFC 8949). Fields are named by their tags,
// those for cbor or else those for json.
package stored

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/vokter/vokter/pipeline/failure"
)

var encoding = func() cbor.UserBufferEncMode {
	m, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC, Sort: cbor.SortBytewiseLexical}.UserBufferEncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// decoding reads back whatever encoding wrote: a host may put any byte into its ETag.
var decoding = func() cbor.DecMode {
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// Encode returns v as a value of a format. It fails with a permanent error where CBOR cannot hold v, such
// as a channel. Times must be in the years 0 to 9999; see flow.CheckTime.
func Encode(format byte, v any) ([]byte, error) { return Append(make([]byte, 0, 512), format, v) }

// Append appends what Encode returns to b.
func Append(b []byte, format byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(append(b, format))
	if err := encoding.MarshalToBuffer(v, buf); err != nil {
		return nil, failure.Permanent(fmt.Errorf("encoding a value of state: %w", err))
	}
	return buf.Bytes(), nil
}

// Decode is the inverse of Encode. It fails with a broken error where b has another format or is damaged.
func Decode(b []byte, format byte, v any) error {
	if len(b) == 0 || b[0] != format {
		return failure.Broken(errors.New("a value of state has a format that this program does not know"))
	}
	if err := decoding.Unmarshal(b[1:], v); err != nil {
		return failure.Broken(fmt.Errorf("a value of state is damaged: %w", err))
	}
	return nil
}

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

// Committed holds values of state by key as the last transaction stored them, so that the lane that owns
// them need not read and decode them again. A value counts once its transaction is committed. When the epoch changes,
// another process may have stored the key meanwhile, so older values no longer count. It relies on
// Tx.OnCommit, whose functions run before the next message of the key is handled. It is safe for
// concurrent use with different keys.
type Committed[V any] struct {
	values *Cache[string, *entry[V]]
}

// entry is what one Put set. A Put of a transaction that is retried or fails leaves an entry that is never
// committed, and the commit of an entry that was replaced changes nothing.
type entry[V any] struct {
	value     V
	epoch     uint64
	committed atomic.Bool
}

// NewCommitted returns an empty Committed for values of so many bytes in total.
func NewCommitted[V any](limit int64) *Committed[V] {
	return &Committed[V]{NewCache[string, *entry[V]](limit)}
}

// Get returns the value of key, which nobody may change. It returns false if the caller must read the
// state.
func (c *Committed[V]) Get(key string, epoch uint64) (v V, ok bool) {
	e, ok := c.values.Get(key)
	if !ok || e.epoch != epoch || !e.committed.Load() {
		return v, false
	}
	return e.value, true
}

// Put sets the value of key, which tx stores in this epoch and which takes so many bytes. Until tx is
// committed, and if it never is, there is no value.
func (c *Committed[V]) Put(tx interface{ OnCommit(f func()) }, key string, epoch uint64, v V, bytes int64) {
	e := &entry[V]{value: v, epoch: epoch}
	c.values.Put(key, e, bytes)
	tx.OnCommit(func() { e.committed.Store(true) })
}

// Drop removes the value of key.
func (c *Committed[V]) Drop(key string) { c.values.Take(key) }

// Bytes returns how many bytes the values take.
func (c *Committed[V]) Bytes() int64 { return c.values.Bytes() }
