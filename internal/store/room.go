package store

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Settings of the disk watch.
const (
	// LookEvery is the interval of the disk watch.
	LookEvery = time.Second
	// FullFor is how long the disk counts as full after a write failed. The free bytes of the
	// file system may not show it (quotas, inodes).
	FullFor = 10 * time.Second
	// FullNeeds is how many bytes must be free after that, even if less is configured. The
	// store writes as much at once.
	FullNeeds = 8 << 20
)

// Shortage is the error while the disk of the data directory has too little room. It ends when
// there is room again.
type Shortage struct {
	// Dir is the data directory.
	Dir string
	// Free is how many bytes the file system has free for this user, and Need how many must be
	// free.
	Free, Need int64
}

func (s *Shortage) Error() string {
	if s.Free >= s.Need {
		return fmt.Sprintf("the disk of the data directory %s refuses to take more, though it tells of %d bytes free: "+
			"see to its quota and its inodes; nothing new is taken in meanwhile", s.Dir, s.Free)
	}
	return fmt.Sprintf("the disk of the data directory %s has %d bytes free and needs %d: "+
		"make room on it, or lower min_free; nothing new is taken in meanwhile", s.Dir, s.Free, s.Need)
}

// Room watches the free space on the disk of a store. A nil *Room always has room.
type Room struct {
	dir       string
	minFree   int64
	freeBytes func(dir string) (int64, error)
	log       *slog.Logger

	// stopped is closed, by closeStopped, when the watch ends. watching says that it has begun.
	stopped      chan struct{}
	closeStopped func()
	watching     atomic.Bool

	mu          sync.Mutex
	fullAt      time.Time     // when the store last said that the disk is full, by a clock that nobody sets
	checkFailed bool          // the last look failed
	shortage    *Shortage     // nil while there is room
	roomAgain   chan struct{} // closed when there is room again; nil while there is
}

// NewRoom returns a watch of the disk of dir, which must have need bytes free, or nil if there
// is nothing to watch. free returns how many bytes the file system of a directory has free for
// this user. If it is nil, the operating system is asked, and an empty dir is not watched.
func NewRoom(dir string, need int64, free func(dir string) (int64, error), log *slog.Logger) *Room {
	if free == nil {
		free = Free
		if dir == "" {
			return nil
		}
	}
	if need == 0 {
		return nil
	}
	done := make(chan struct{})
	return &Room{dir: dir, minFree: need, freeBytes: free, log: log, stopped: done, closeStopped: sync.OnceFunc(func() { close(done) })}
}

// check checks whether there is room, and logs a change.
func (r *Room) check() {
	free, err := r.freeBytes(r.dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if !r.checkFailed {
			r.log.Warn("how much room the disk has cannot be found out", "dir", r.dir, "error", err)
		}
		r.checkFailed = true
		return
	}
	r.checkFailed = false
	full, need := false, r.minFree
	if !r.fullAt.IsZero() {
		full, need = time.Since(r.fullAt) < FullFor, max(need, FullNeeds)
	}
	switch {
	case free < need || full:
		if r.shortage == nil {
			r.roomAgain = make(chan struct{})
			r.log.Warn("the disk has too little room: nothing new is taken in until it has", "dir", r.dir, "free", free, "needed", need)
		}
		r.shortage = &Shortage{r.dir, free, need}
	case r.shortage != nil:
		close(r.roomAgain)
		r.fullAt, r.shortage, r.roomAgain = time.Time{}, nil, nil
		r.log.Warn("the disk has room again: going on", "dir", r.dir, "free", free, "needed", need)
	}
}

// Opens returns an error if the disk is too full to open the store, which would retry for ever.
// It returns nil if the free space is not known.
func (r *Room) Opens() error {
	if r == nil || r.dir == "" {
		return nil
	}
	if free, err := r.freeBytes(r.dir); err == nil && free < FullNeeds {
		return fmt.Errorf("the data directory %s cannot be used: its disk has %d bytes free, and to open it takes %d; make room on that disk, then start again",
			r.dir, free, FullNeeds)
	}
	return nil
}

// Start begins to watch. On a nil Room it does nothing.
func (r *Room) Start() {
	if r == nil {
		return
	}
	r.check()
	r.watching.Store(true)
	go r.checkPeriodically()
}

// Stop ends the watch.
func (r *Room) Stop() {
	if r != nil {
		r.closeStopped()
	}
}

// checkPeriodically looks every second until Stop is called.
func (r *Room) checkPeriodically() {
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.stopped:
			return
		case <-tick.C:
			r.check()
		}
	}
}

// DiskFull is called by the store when the disk is full for a write. It returns when there is
// room, and the store then retries the write. It must not return earlier, because a second
// failure ends the process. While the store is being opened it returns at once, and opening
// fails. A nil Room does not wait.
func (r *Room) DiskFull() {
	if r == nil || !r.watching.Load() {
		return
	}
	r.mu.Lock()
	r.fullAt = time.Now()
	r.mu.Unlock()
	r.check()
	if back := r.Again(); back != nil {
		select {
		case <-back:
		case <-r.stopped: // the watch has ended; the store belongs to somebody else
		}
		return
	}
	time.Sleep(LookEvery) // the free space is not known; retry after a pause
}

// Err returns nil while there is room, otherwise a *Shortage.
func (r *Room) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shortage == nil {
		return nil
	}
	return r.shortage
}

// Again returns nil while there is room, and otherwise a channel that is closed when there is
// room again.
func (r *Room) Again() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.roomAgain
}

// Wait waits for room. It returns the cause of ctx when ctx is done, and closed when done is closed.
func (r *Room) Wait(ctx context.Context, done <-chan struct{}, closed error) error {
	for {
		back := r.Again()
		if back == nil {
			return nil
		}
		select {
		case <-back:
		case <-done:
			return closed
		case <-ctx.Done():
			if err := r.Err(); err != nil {
				return err
			}
			return context.Cause(ctx)
		}
	}
}

// Free returns how many bytes the file system of dir, which exists, has free for this user.
func Free(dir string) (int64, error) {
	u, err := vfs.Default.GetDiskUsage(dir)
	return int64(min(u.AvailBytes, math.MaxInt64)), err
}
