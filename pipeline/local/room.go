package local

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/store"
)

// How the room on the disk is watched.
const (
	// lookEvery is how often it is looked at.
	lookEvery = time.Second
	// fullFor is for how long at least the disk counts as full after the store said so: what
	// the file system tells need not show it (quotas, inodes).
	fullFor = 10 * time.Second
	// fullNeeds is how many bytes must be free after that, whatever Config.MinFree is: what
	// the store writes at once.
	fullNeeds = 8 << 20
)

// Shortage says that intake stopped because the disk of the data directory has too little
// room. It ends by itself.
type Shortage struct {
	// Dir is the data directory.
	Dir string
	// Free is what its file system has for this user, and Need what Config.MinFree asks
	// for, in bytes.
	Free, Need int64
}

func (s *Shortage) Error() string {
	if s.Free >= s.Need {
		return fmt.Sprintf("the disk of the data directory %s refuses to take more, though it tells of %d bytes free: "+
			"see to its quota and its inodes; nothing new is taken in meanwhile", s.Dir, s.Free)
	}
	return fmt.Sprintf("the disk of the data directory %s has %d bytes free and needs %d: "+
		"make room on it; nothing new is taken in meanwhile", s.Dir, s.Free, s.Need)
}

// room watches how much room the disk has. The nil room is always enough.
type room struct {
	dir  string
	need int64
	free func(dir string) (int64, error)
	log  *slog.Logger

	short atomic.Pointer[Shortage]
	// done is closed when the watch ends; watched says that it began.
	done    chan struct{}
	end     sync.Once
	watched atomic.Bool

	mu    sync.Mutex
	full  time.Time // when the store last said that the disk is full, by a clock that nobody sets
	blind bool      // the last look failed
	back  chan struct{}
}

// newRoom returns what watches the disk as c wants it.
func newRoom(c Config) *room {
	dir := c.Dir
	if c.Store != nil {
		dir = c.Store.Dir()
	}
	if c.Free == nil {
		c.Free = store.Free
		if dir == "" {
			return nil
		}
	}
	if c.MinFree == 0 {
		return nil
	}
	return &room{dir: dir, need: c.MinFree, free: c.Free, log: c.Logger, done: make(chan struct{})}
}

// look finds out whether there is room. It logs where that changed.
func (r *room) look() {
	free, err := r.free(r.dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if !r.blind {
			r.log.Warn("how much room the disk has cannot be found out", "dir", r.dir, "error", err)
		}
		r.blind = true
		return
	}
	r.blind = false
	full, need := false, r.need
	if !r.full.IsZero() {
		full, need = time.Since(r.full) < fullFor, max(need, fullNeeds)
	}
	before := r.short.Load()
	switch {
	case free < need || full:
		s := &Shortage{r.dir, free, need}
		if before == nil {
			r.back = make(chan struct{})
			r.log.Warn("the disk has too little room: nothing new is taken in until it has", "dir", r.dir, "free", free, "needed", need)
		}
		r.short.Store(s)
	case before != nil:
		r.full = time.Time{}
		r.short.Store(nil)
		close(r.back)
		r.log.Warn("the disk has room again: going on", "dir", r.dir, "free", free, "needed", need)
	}
}

// opens says whether the store may be opened: without any room it would try for ever. A
// directory that is not there yet, or tells nothing, gives its own error.
func (r *room) opens() error {
	if r == nil || r.dir == "" {
		return nil
	}
	if free, err := r.free(r.dir); err == nil && free < fullNeeds {
		return fmt.Errorf("the data directory %s cannot be used: its disk has %d bytes free, and to open it takes %d; make room on that disk, then start again",
			r.dir, free, fullNeeds)
	}
	return nil
}

// start begins to watch; nil watches nothing.
func (r *room) start() {
	if r == nil {
		return
	}
	r.look()
	r.watched.Store(true)
	go r.watch()
}

func (r *room) stop() {
	if r != nil {
		r.end.Do(func() { close(r.done) })
	}
}

// watch looks every second until stop is called.
func (r *room) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-tick.C:
			r.look()
		}
	}
}

// diskFull is called by the store when a write found the disk full; the write is tried
// again when it returns. That is only when there is room, because a store whose write
// failed for want of it ends the process at best. While the store is being opened its
// error tells enough.
func (r *room) diskFull() {
	if !r.watched.Load() {
		return
	}
	r.mu.Lock()
	r.full = time.Now()
	r.mu.Unlock()
	r.look()
	if back := r.again(); back != nil {
		select {
		case <-back:
		case <-r.done: // the store is another's, and nobody looks any more
		}
		return
	}
	time.Sleep(lookEvery) // the disk tells nothing; not at once all the same
}

// err returns nil while there is room, otherwise a *Shortage.
func (r *room) err() error {
	if r == nil {
		return nil
	}
	if s := r.short.Load(); s != nil {
		return s
	}
	return nil
}

// again returns nil while there is room, otherwise what is closed when there is.
func (r *room) again() <-chan struct{} {
	if r.err() == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short.Load() == nil {
		return nil
	}
	return r.back
}

// wait waits for room until ctx is done or done is closed.
func (r *room) wait(ctx context.Context, done <-chan struct{}) error {
	for {
		back := r.again()
		if back == nil {
			return nil
		}
		select {
		case <-back:
		case <-done:
			return ErrClosed
		case <-ctx.Done():
			if err := r.err(); err != nil {
				return err
			}
			return context.Cause(ctx)
		}
	}
}

// Ready returns nil, or a *Shortage while nothing is taken in for want of room on the
// disk: publishers outside a transaction wait.
func (t *Transport) Ready() error { return t.room.err() }

// Room returns nil while there is room on the disk, otherwise a channel that is closed
// when there is again.
func (t *Transport) Room() <-chan struct{} { return t.room.again() }
