package stored

import "sync/atomic"

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
