package local

import "github.com/vokter/vokter/pipeline/store"

// Shortage says that intake stopped because the disk of the data directory has too little
// room. It ends by itself.
type Shortage = store.Shortage

// newRoom returns what watches the disk as c wants it.
func newRoom(c Config) *store.Room {
	dir := c.Dir
	if c.Store != nil {
		dir = c.Store.Dir()
	}
	return store.NewRoom(dir, c.MinFree, c.Free, c.Logger)
}

// Ready returns nil, or a *Shortage while nothing is taken in for want of room on the
// disk: publishers outside a transaction wait.
func (t *Transport) Ready() error { return t.room.Err() }

// Room returns nil while there is room on the disk, otherwise a channel that is closed
// when there is again.
func (t *Transport) Room() <-chan struct{} { return t.room.Again() }
