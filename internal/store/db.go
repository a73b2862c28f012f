package store

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/failure"
)

// ErrClosed is what a DB returns after Close.
var ErrClosed = errors.New("store: closed")

// Limits of Options.Lanes.
const (
	DefaultLanes = 64
	MaxLanes     = 1 << 12
)

// Format is the version of the keys, and of the values of the stages' state, that this code
// writes.
const Format = 7

// Options configures Open.
type Options struct {
	// Dir is the directory. Open makes it if it does not exist. Empty: the store is in memory,
	// without a write-ahead log, and lost at Close.
	Dir string
	// FS is the file system of Dir. Nil means that of the operating system.
	FS vfs.FS
	// Lanes is the number of lanes of a new store, from 1 to MaxLanes. 0 means DefaultLanes. An
	// existing store keeps its number.
	Lanes int
	// Memory is about how many bytes the store may hold in memory: what was written last, before
	// it is sorted into files, and a cache of what was read. The least is about 10 MiB. 0 means 64
	// MiB. The memory is allocated when it is needed.
	Memory int64
	// MemTable is how many bytes of what was written last are gathered in memory before they
	// are sorted into files; up to twice as many are held. 0 is an eighth of Memory, from 1 to 16
	// MiB: messages that are handled within that much never reach a file.
	MemTable uint64
	// Gather is how long a batch that was committed without sync may stay in memory only, where it
	// is visible. Such batches are then written together, and earlier if one is committed with sync. 0
	// means that each is written at once. It does not apply to a store in memory.
	Gather time.Duration
	// Logger gets Pebble's reports at level debug and its errors at level error. Nil discards
	// them.
	Logger *slog.Logger
	// OnFatal is called with the error just before the process ends because Pebble cannot
	// continue, for example on a full disk. It may be nil.
	OnFatal func(error)
}

// DB is an open store, seen from one of its namespaces. It is safe for concurrent use.
type DB struct {
	*core
	namespacePrefix
	namespace string
	id        string
}

// core is the part of a store that all its namespaces share.
type core struct {
	pebble *pebble.DB
	log    *logger
	dir    string
	// disk is the file system of dir. It is nil for a store in memory.
	disk *disk
	meta meta
	// hasManifest says that Pebble has begun a manifest since it was opened.
	hasManifest atomic.Bool

	mu         sync.Mutex // held to change closed, and to begin an operation
	closed     bool
	operations sync.WaitGroup // operations, iterators and commits that use pebble
	closeOnce  func() error   // close, once

	buffer        writeBuffer
	flushInterval time.Duration // Options.Gather
	syncMu        sync.Mutex    // held by the commit that makes others durable
	syncedBatches uint64        // how many of the applied batches are known to be durable

	users    userRegistry
	backupMu sync.Mutex // held by Backup
}

// Bounds of what the store holds in memory.
const (
	defaultMemory = 64 << 20
	minMemTable   = 1 << 20
	maxMemTable   = 16 << 20
	minCache      = 8 << 20
)

// memorySizes returns the sizes of the block cache and of a memtable.
func (o Options) memorySizes() (cache int64, memTable uint64) {
	m := cmp.Or(o.Memory, defaultMemory)
	memTable = cmp.Or(o.MemTable, uint64(min(max(m/8, minMemTable), maxMemTable)))
	return max(m-2*int64(memTable), minCache), memTable
}

// meta is fixed when a store is made.
type meta struct {
	ID    string `json:"id"`
	Lanes int    `json:"lanes"`
}

// Open opens the store in o.Dir, and creates it if there is none. Errors say what to do.
func Open(o Options) (*DB, error) {
	o.Lanes = cmp.Or(o.Lanes, DefaultLanes)
	if o.Lanes < 1 || o.Lanes > MaxLanes {
		return nil, fmt.Errorf("store: %d lanes are not between 1 and %d", o.Lanes, MaxLanes)
	}
	c := &core{dir: o.Dir}
	c.log = newLogger(cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), o.Dir, c.users.fatalHandler(o.OnFatal))
	c.closeOnce = sync.OnceValue(c.close)
	cache, memTable := o.memorySizes()
	po := &pebble.Options{
		FormatMajorVersion: pebble.FormatTableFormatV6,
		CacheSize:          cache,
		MemTableSize:       memTable,
		Logger:             c.log,
		// Pebble's default listener ends the process on corruption. Here the read returns an
		// error.
		EventListener: &pebble.EventListener{
			DataCorruption: c.onCorruption, BackgroundError: c.onBackgroundError, ManifestCreated: c.onManifestCreated,
		},
	}
	// Most tables lack the key that is looked for. All levels inherit it.
	po.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	if o.Dir == "" {
		po.FS, po.DisableWAL = vfs.NewMem(), true
		// Pebble's default looks ten times a second whether more compactions may run. In the simulated time of a test
		// that would be most of the work, and a small store needs none of it.
		po.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	} else {
		if o.FS == nil {
			if err := prepareDir(o.Dir); err != nil {
				return nil, err
			}
			o.FS = vfs.Default
		}
		c.disk = &disk{FS: vfs.OnDiskFull(o.FS, c.users.notifyDiskFull), underlying: o.FS, dir: o.Dir}
		c.flushInterval = o.Gather
		if err := c.disk.checkComplete(); err != nil {
			return nil, err
		}
		po.FS = c.disk
	}
	p, err := pebble.Open(o.Dir, po)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damageError(o.Dir, "", err) // the directory exists, so a file in it is missing
	case err != nil:
		return nil, openError(o.Dir, err)
	}
	c.pebble = p
	if c.disk != nil {
		fatal := func(err error) { c.log.Fatalf("%v", err) }
		c.disk.fatal.Store(&fatal)
	}
	d := &DB{core: c}
	if err := d.readMeta(o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if err := d.finishCopies(); err != nil {
		return nil, errors.Join(openError(o.Dir, err), p.Close())
	}
	return d.Namespace(""), nil
}

// readMeta reads the metadata that was fixed at creation, or writes it to a new store.
func (d *DB) readMeta(o Options) error {
	v, ok, err := d.get([]byte{kindMeta})
	if err != nil {
		return openError(o.Dir, err)
	}
	if ok {
		switch {
		case len(v) == 0:
			return openError(o.Dir, errKey)
		case v[0] > Format:
			return fmt.Errorf("%s was written by a newer version of Vokter (format %d, this one knows %d): "+
				"use that version, or another directory", o.Dir, v[0], Format)
		case v[0] < Format:
			return fmt.Errorf("%s was written by an older version of Vokter (format %d, this one needs %d): "+
				"use that version, or another directory", o.Dir, v[0], Format)
		}
		if err := json.Unmarshal(v[1:], &d.meta); err != nil {
			return openError(o.Dir, err)
		}
		if d.meta.Lanes < 1 || d.meta.Lanes > MaxLanes {
			return openError(o.Dir, fmt.Errorf("store: %d lanes", d.meta.Lanes))
		}
		return nil
	}
	if d.disk != nil && d.disk.hasFile(".sst") {
		return damageError(o.Dir, "", errors.New("what it says of itself is missing"))
	}
	d.meta = meta{ID: rand.Text(), Lanes: o.Lanes}
	if err := d.writeMeta(); err != nil {
		return openError(o.Dir, err)
	}
	return nil
}

// writeMeta durably stores the metadata of the store, and its format.
func (d *DB) writeMeta() error {
	b, err := json.Marshal(d.meta)
	if err != nil {
		return err
	}
	return d.pebble.Set([]byte{kindMeta}, append([]byte{Format}, b...), &pebble.WriteOptions{Sync: d.disk != nil})
}

// ID is the random ID that this namespace of the store got when the store was made: 26
// letters and digits. No other namespace and no other store has it.
func (d *DB) ID() string { return d.id }

// Dir is the directory of the store; empty for one in memory.
func (d *DB) Dir() string { return d.dir }

// Lanes is the number of lanes that the store was made with.
func (d *DB) Lanes() int { return d.meta.Lanes }

// Size returns the size of the store on disk, in bytes, with all its namespaces. It is 0 where
// nothing is kept on disk, and after Close.
func (d *DB) Size() int64 {
	if d.disk == nil || d.acquire() != nil {
		return 0
	}
	defer d.release()
	m := d.pebble.Metrics()
	used := m.DiskSpaceUsage()
	if open := m.WAL.Size; open > m.WAL.PhysicalSize { // which leaves out the log that is being written
		used += open - m.WAL.PhysicalSize
	}
	return int64(used)
}

// Close waits for operations in progress, flushes the log and closes the store for all
// namespaces. A second Close waits for the first and returns its result.
func (c *core) Close() error { return c.closeOnce() }

func (c *core) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.operations.Wait()
	return errors.Join(c.flushBuffer(nil), c.pebble.Close())
}

// acquire keeps the store open until release is called. Every use of pebble is between the two.
func (c *core) acquire() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.operations.Add(1)
	return nil
}

func (c *core) release() { c.operations.Done() }

// onManifestCreated is called by Pebble.
func (c *core) onManifestCreated(info pebble.ManifestCreateInfo) {
	if info.Err == nil {
		c.hasManifest.Store(true)
	}
}

// prepareDir creates the directory dir, and verifies that files can be created in it.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return openError(dir, err)
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return openError(dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ErrInUse says that a store is already open, in this process or another.
var ErrInUse = errors.New("in use")

// openError returns err with advice.
func openError(dir string, err error) error {
	text := err.Error()
	class, _ := failure.ClassOf(err)
	switch {
	case class == failure.ClassBroken:
		return err // it has advice already
	case strings.Contains(text, "resource temporarily unavailable"):
		return fmt.Errorf("%s is %w by another process%s: stop that one, or use another directory", dir, ErrInUse, LockHolder(dir))
	case strings.Contains(text, "lock held by current process"):
		return fmt.Errorf("%s is %w by this process: open it once and share it", dir, ErrInUse)
	case dir == "":
		return fmt.Errorf("opening a store in memory: %w", err)
	case pebble.IsCorruptionError(err), strings.Contains(text, "object size mismatch"):
		return damageError(dir, "", err)
	case errors.Is(err, pebble.ErrDBNotPristine):
		return damageError(dir, "", errors.New("its file marker.format-version.* is missing"))
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // leave out the path: it is in dir, perhaps with a random name
	}
	return fmt.Errorf("the data directory %s cannot be used: %w; %s", dir, err, remedy(err))
}

// copyError returns err, an error of making a copy in dir, with advice.
func copyError(dir string, err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	return fmt.Errorf("copying into %s failed: %w; %s", dir, errno, remedy(errno))
}

// remedy returns advice for err, an error of writing to a directory.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "its file system can only be read; use a directory on another"
	case errors.Is(err, fs.ErrPermission):
		return "give this user the right to write there, or use another directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on that disk, or use a directory on another"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "somebody else uses that directory; use another"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return "a part of this path is a file; use another directory"
	case errors.Is(err, fs.ErrNotExist):
		return "no directory can be made there; use another"
	}
	return "use another directory, on a local disk"
}
