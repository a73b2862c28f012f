package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system of a store's directory, whose full disk is waited for. What is
// written elsewhere, a backup, fails at once instead: that disk need not be the same.
type disk struct {
	vfs.FS
	plain vfs.FS
	dir   string
	// fatal, which does not return, is called when the log cannot be gone on with. It is nil
	// while the store is opened.
	fatal atomic.Pointer[func(error)]
}

func newDisk(plain vfs.FS, dir string, full func()) *disk {
	return &disk{FS: vfs.OnDiskFull(plain, full), plain: plain, dir: dir}
}

// of is what files are to be made with.
func (d *disk) of(name string) vfs.FS {
	if within(name, d.dir) {
		return d.FS
	}
	return d.plain
}

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.of(name).Create(name, c)
	d.check(name, err)
	return f, err
}

func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.of(newname).ReuseForWrite(oldname, newname, c)
	d.check(newname, err)
	return f, err
}

// check ends the process where a new log could not be made: Pebble would panic.
func (d *disk) check(name string, err error) {
	if err == nil || filepath.Ext(name) != ".log" || filepath.Dir(absolute(name)) != absolute(d.dir) {
		return
	}
	if fatal := d.fatal.Load(); fatal != nil {
		(*fatal)(err)
	}
}

func (d *disk) Link(oldname, newname string) error { return d.of(newname).Link(oldname, newname) }

func (d *disk) MkdirAll(dir string, perm os.FileMode) error { return d.of(dir).MkdirAll(dir, perm) }

// complete says what is missing in a directory that has a part of a store: Pebble would
// make a new one there.
func (d *disk) complete() error {
	if d == nil || d.holds("marker.manifest.") || !d.holds(".sst") && !d.holds(".log") && !d.holds("marker.format-version.") {
		return nil
	}
	return damageError(d.dir, "", errors.New("its file marker.manifest.* is missing"))
}

// holds reports whether the directory has a file whose name begins or ends with part.
func (d *disk) holds(part string) bool {
	if d == nil {
		return false
	}
	names, _ := d.List(d.dir) // a directory that cannot be read is for Pebble to tell
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(n, part) || strings.HasSuffix(n, part)
	})
}

// within reports whether name is dir or in it.
func within(name, dir string) bool {
	rel, err := filepath.Rel(absolute(dir), absolute(name))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolved is the absolute form of name, without symbolic links as far as it exists.
func resolved(name string) string {
	name = absolute(name)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	parent := filepath.Dir(name)
	if parent == name {
		return name
	}
	return filepath.Join(resolved(parent), filepath.Base(name))
}

// absolute is the absolute form of name, or name where the working directory is not known.
func absolute(name string) string {
	if a, err := filepath.Abs(name); err == nil {
		return a
	}
	return name
}

// How the room on a disk is watched.
const (
	// LookEvery is how often it is looked at.
	LookEvery = time.Second
	// FullFor is for how long at least the disk counts as full after the store said so: what
	// the file system tells need not show it (quotas, inodes).
	FullFor = 10 * time.Second
	// FullNeeds is how many bytes must be free after that, whatever Room.Need is: what
	// the store writes at once.
	FullNeeds = 8 << 20
)

// Shortage says that intake stopped because the disk of the data directory has too little
// room. It ends by itself.
type Shortage struct {
	// Dir is the data directory.
	Dir string
	// Free is what its file system has for this user, and Need what is
	// asked for, in bytes.
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

// Room watches how much room the disk of a store has. The nil Room is always enough.
type Room struct {
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

// NewRoom returns what watches the disk of dir, which must have need bytes free; nil where
// there is nothing to watch. free tells how many a directory's file system has for this
// user; nil asks the operating system, which has nothing to tell of an empty dir.
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
	return &Room{dir: dir, need: need, free: free, log: log, done: make(chan struct{})}
}

// look finds out whether there is room. It logs where that changed.
func (r *Room) look() {
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
		full, need = time.Since(r.full) < FullFor, max(need, FullNeeds)
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

// Opens says whether the store may be opened: without any room it would try for ever. A
// directory that is not there yet, or tells nothing, gives its own error.
func (r *Room) Opens() error {
	if r == nil || r.dir == "" {
		return nil
	}
	if free, err := r.free(r.dir); err == nil && free < FullNeeds {
		return fmt.Errorf("the data directory %s cannot be used: its disk has %d bytes free, and to open it takes %d; make room on that disk, then start again",
			r.dir, free, FullNeeds)
	}
	return nil
}

// Start begins to watch; nil watches nothing.
func (r *Room) Start() {
	if r == nil {
		return
	}
	r.look()
	r.watched.Store(true)
	go r.watch()
}

// Stop ends the watch.
func (r *Room) Stop() {
	if r != nil {
		r.end.Do(func() { close(r.done) })
	}
}

// watch looks every second until Stop is called.
func (r *Room) watch() {
	tick := time.NewTicker(LookEvery)
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

// DiskFull is called by the store when a write found the disk full; the write is tried
// again when it returns. That is only when there is room, because a store whose write
// failed for want of it ends the process at best. While the store is being opened its
// error tells enough.
func (r *Room) DiskFull() {
	if !r.watched.Load() {
		return
	}
	r.mu.Lock()
	r.full = time.Now()
	r.mu.Unlock()
	r.look()
	if back := r.Again(); back != nil {
		select {
		case <-back:
		case <-r.done: // the store is another's, and nobody looks any more
		}
		return
	}
	time.Sleep(LookEvery) // the disk tells nothing; not at once all the same
}

// Err returns nil while there is room, otherwise a *Shortage.
func (r *Room) Err() error {
	if r == nil {
		return nil
	}
	if s := r.short.Load(); s != nil {
		return s
	}
	return nil
}

// Again returns nil while there is room, otherwise what is closed when there is.
func (r *Room) Again() <-chan struct{} {
	if r.Err() == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short.Load() == nil {
		return nil
	}
	return r.back
}

// Wait waits for room until ctx is done, or done is closed: then it returns ErrClosed.
func (r *Room) Wait(ctx context.Context, done <-chan struct{}) error {
	for {
		back := r.Again()
		if back == nil {
			return nil
		}
		select {
		case <-back:
		case <-done:
			return ErrClosed
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
