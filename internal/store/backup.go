package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// copyMarker is the file that is written last and marks a complete copy. When a store with
	// this file is opened, it takes a new ID and removes the file. So the copy and the original
	// never use the same positions.
	copyMarker = "VOKTER-COPY"
	// spoolPrefix begins the name of a copy within the data directory that is being sent.
	spoolPrefix = ".backup-"
)

var errInMemory = errors.New("this store is in memory: only one in a directory can be copied")

// Backup copies the store, with all its namespaces, to dir while it is in use. Dir must be
// empty or missing, and still is after an error or a crash; the next Backup to the same dir
// removes remains beside it. The copy is opened like any store and has an ID of its own. Its
// files may share blocks with those of the store if both are on one disk. Errors say what to
// do.
func (d *DB) Backup(dir string) error {
	if d.dir == "" {
		return errInMemory
	}
	d.backupMu.Lock()
	defer d.backupMu.Unlock()
	dir = absolutePath(dir)
	if to, from := resolveSymlinks(dir), resolveSymlinks(d.dir); isWithin(to, from) || isWithin(from, to) {
		return fmt.Errorf("no backup was made: %s and the data directory %s are one in the other; name another directory", dir, d.dir)
	}
	err := createAtomically(d.disk.underlying, dir, func(to string) error {
		if err := d.checkpoint(to); err != nil {
			return err
		}
		return markComplete(d.disk.underlying, to)
	})
	if err != nil {
		return fmt.Errorf("no backup was made: %w", err)
	}
	return nil
}

// BackupTo writes a copy like that of Backup to w, as a tar archive for Unpack. Meanwhile the
// copy is in the data directory, as links to the store's files if the file system has links.
func (d *DB) BackupTo(w io.Writer) error {
	if d.dir == "" {
		return errInMemory
	}
	dir := d.disk.PathJoin(d.dir, spoolPrefix+rand.Text())
	defer func() { _ = d.disk.underlying.RemoveAll(dir) }() // if this fails, the next Open does it
	if err := d.checkpoint(dir); err != nil {
		return fmt.Errorf("no backup was made: %w", copyError(dir, err))
	}
	if err := pack(d.disk.underlying, dir, w); err != nil {
		return fmt.Errorf("the backup was broken off: %w", err)
	}
	return nil
}

// finishCopies finishes copies in the directory of a store that was just opened: it removes
// incomplete ones, and gives a complete one its ID.
func (d *DB) finishCopies() error {
	if d.disk == nil {
		return nil
	}
	if err := removeLeftovers(d.disk.underlying, d.dir, spoolPrefix); err != nil {
		return err
	}
	name := d.disk.PathJoin(d.dir, copyMarker)
	if _, err := d.disk.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	d.meta.ID = rand.Text()
	if err := d.writeMeta(); err != nil {
		return err
	}
	return errors.Join(d.disk.Remove(name), syncDir(d.disk, d.dir))
}

// checkpoint copies the store to the directory to, which must not exist, and verifies that the
// copy can be opened.
func (d *DB) checkpoint(to string) error {
	if err := d.acquire(); err != nil {
		return err
	}
	defer d.release()
	if err := errors.Join(d.flushBuffer(nil), d.beginManifest()); err != nil {
		return err
	}
	if err := d.pebble.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return err
	}
	return verify(d.disk.underlying, to)
}

// beginManifest makes Pebble begin a manifest, if it has not done so since it was opened.
// Pebble opens one only when it has something to write there. Without one a checkpoint would
// get an empty manifest.
func (d *DB) beginManifest() error {
	if d.hasManifest.Load() {
		return nil
	}
	if err := d.writeMeta(); err != nil {
		return err
	}
	return d.pebble.Flush()
}

// verify returns an error if the copy in dir cannot be opened. It opens the copy without
// changing it, and reads its metadata. Opening reads the manifest and the log, and checks that
// all tables exist with the right length.
func verify(f vfs.FS, dir string) error {
	failed := make(chan error, 1)
	go func() {
		l := &verifyLogger{}
		err := errors.New("it cannot be opened")
		defer func() { failed <- errors.Join(l.fatal, err) }()
		err = readCopy(f, dir, l)
	}()
	err := <-failed
	if rerr := f.Remove(f.PathJoin(dir, "LOCK")); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("the copy is not whole (%s)", firstLine(err.Error()))
	}
	return nil
}

func readCopy(f vfs.FS, dir string, l *verifyLogger) error {
	p, err := pebble.Open(dir, &pebble.Options{
		FS: f, ReadOnly: true, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: l,
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}, // the read returns the error
	})
	if err != nil {
		return err
	}
	v, held, err := p.Get([]byte{kindMeta})
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		err = errors.New("what it says of itself is missing")
	case err == nil && len(v) == 0:
		err = errKey
	}
	if held != nil {
		err = errors.Join(err, held.Close())
	}
	return errors.Join(err, p.Close())
}

// verifyLogger is the logger of a copy that is verified. A fatal error of Pebble ends the
// verification, and not the process, which uses another store.
type verifyLogger struct{ fatal error }

func (*verifyLogger) Infof(string, ...any)  {}
func (*verifyLogger) Errorf(string, ...any) {}

func (q *verifyLogger) Fatalf(format string, args ...any) {
	q.fatal = fmt.Errorf(format, args...)
	runtime.Goexit() // Fatalf must not return
}
