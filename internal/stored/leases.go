package stored

import (
	"maps"
	"sync"
)

// Lease is work that this process has begun for a key.
type Lease[ID comparable, V any] struct {
	// ID distinguishes the work from earlier and later work for the same key.
	ID    ID
	Value V
	// Epoch is that of the key when the work began.
	Epoch uint64
}

// Leases hold which work this process has begun: the checks that it requested, the attempts to deliver
// that it makes. The stored state of a key says which work is under way, and Leases whether this process
// began it, so that its result will come. After a restart there are none, and nobody waits for what a
// dead process has begun.
//
// A key has at most two leases: that of its committed state, and one that an open transaction
// begins. A transaction calls Begin; Commit or End follows after its commit.
//
//   - If the transaction is undone, the committed lease stands. What the transaction has begun is
//     not found by a later one, because the work has another ID or the epoch is another.
//   - One commit may cover several messages of a key. Each of them finds what the messages before
//     it have begun, and Commit or End is called for each of them, in order.
//   - The epoch of a key changes when this process gets the key again, after another process had
//     it. Work of another epoch is void: what this process heard of it is lost.
//
// The zero Leases are empty. They are safe for concurrent use.
type Leases[ID comparable, V any] struct {
	mu   sync.Mutex
	keys map[string]keyLeases[ID, V]
}

// keyLeases are those of one key; each may be nil.
type keyLeases[ID comparable, V any] struct {
	committed, begun *Lease[ID, V]
}

// Begin notes, before the commit, that the transaction begins the work id in epoch.
func (t *Leases[ID, V]) Begin(key string, id ID, epoch uint64, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil {
		t.keys = make(map[string]keyLeases[ID, V])
	}
	ls := t.keys[key]
	ls.begun = &Lease[ID, V]{ID: id, Value: v, Epoch: epoch}
	t.keys[key] = ls
}

// Commit notes that by the committed state of key the work id is under way, in this process or another. It changes
// nothing if that was so before.
func (t *Leases[ID, V]) Commit(key string, id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ls := t.keys[key]
	if ls.begun != nil && ls.begun.ID == id {
		ls = keyLeases[ID, V]{committed: ls.begun}
	}
	if ls.committed != nil && ls.committed.ID != id {
		ls.committed = nil
	}
	t.setLeases(key, ls)
}

// End notes that by the committed state of key no work is under way.
func (t *Leases[ID, V]) End(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ls := t.keys[key]
	ls.committed = nil
	t.setLeases(key, ls)
}

// setLeases stores the leases of key. t.mu is held.
func (t *Leases[ID, V]) setLeases(key string, ls keyLeases[ID, V]) {
	if ls.committed == nil && ls.begun == nil {
		delete(t.keys, key)
		return
	}
	t.keys[key] = ls
}

// Find returns the work id if this process has begun it in epoch. ok is false otherwise.
func (t *Leases[ID, V]) Find(key string, id ID, epoch uint64) (l Lease[ID, V], ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ls := t.keys[key]
	switch c, b := ls.committed, ls.begun; {
	case c != nil && c.ID == id && c.Epoch == epoch:
		return *c, true
	case b != nil && b.ID == id && b.Epoch == epoch:
		return *b, true
	}
	return l, false
}

// Committed returns the lease of the committed state of key. ok is false if there is none.
func (t *Leases[ID, V]) Committed(key string) (l Lease[ID, V], ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.keys[key].committed; c != nil {
		return *c, true
	}
	return l, false
}

// Each calls f for each committed lease. f must not use t.
func (t *Leases[ID, V]) Each(f func(key string, l Lease[ID, V])) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, ls := range t.keys {
		if ls.committed != nil {
			f(key, *ls.committed)
		}
	}
}

// Keep forgets all keys but the owned ones. owned must not use t.
func (t *Leases[ID, V]) Keep(owned func(key string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.keys, func(key string, _ keyLeases[ID, V]) bool { return !owned(key) })
}

// Len returns how many keys have a lease.
func (t *Leases[ID, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys)
}
