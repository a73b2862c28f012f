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
	// copyMark is the file, written last, that makes a directory a whole copy. A store that
	// finds it when it is opened takes a new ID, so that what the copy goes on to do has
	// other positions than what the original does, and removes it.
	copyMark = "VOKTER-COPY"
	// spool begins the name of a copy within the data directory that is being sent.
	spool = ".backup-"
)

var errMemory = errors.New("this store is in memory: only one in a directory can be copied")

// Backup makes dir a copy of the store as it is now, of all its namespaces, while others
// go on to write to it. Dir must be empty or missing; after a failure, or a kill at any
// moment, it still is, and what was begun beside it is removed by the next Backup to the
// same dir. The copy is opened like any store, and is another one: it has another ID. Its
// files may share their blocks with the store's if both are on one disk. Its errors say
// what to do.
func (d *DB) Backup(dir string) error {
	if d.dir == "" {
		return errMemory
	}
	d.backups.Lock()
	defer d.backups.Unlock()
	dir = absolute(dir)
	if to, from := resolved(dir), resolved(d.dir); within(to, from) || within(from, to) {
		return fmt.Errorf("no backup was made: %s and the data directory %s are one in the other; name another directory", dir, d.dir)
	}
	err := whole(d.disk.plain, dir, func(to string) error {
		if err := d.checkpoint(to); err != nil {
			return err
		}
		return mark(d.disk.plain, to)
	})
	if err != nil {
		return fmt.Errorf("no backup was made: %w", err)
	}
	return nil
}

// BackupTo writes a copy like that of Backup to w, as a tar archive for Unpack. Until it
// is sent, the copy is within the data directory, as links to the store's files where the
// file system has them.
func (d *DB) BackupTo(w io.Writer) error {
	if d.dir == "" {
		return errMemory
	}
	dir := d.disk.PathJoin(d.dir, spool+rand.Text())
	defer func() { _ = d.disk.plain.RemoveAll(dir) }() // the next Open does it otherwise
	if err := d.checkpoint(dir); err != nil {
		return fmt.Errorf("no backup was made: %w", copyError(dir, err))
	}
	if err := pack(d.disk.plain, dir, w); err != nil {
		return fmt.Errorf("the backup was broken off: %w", err)
	}
	return nil
}

// settle does what is left of copies in the directory of a store that was just opened.
func (d *DB) settle() error {
	if d.disk == nil {
		return nil
	}
	if err := sweep(d.disk.plain, d.dir, spool); err != nil {
		return err
	}
	name := d.disk.PathJoin(d.dir, copyMark)
	if _, err := d.disk.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	d.meta.ID = rand.Text()
	if err := d.writeMeta(storeFormat); err != nil {
		return err
	}
	return errors.Join(d.disk.Remove(name), syncDir(d.disk, d.dir))
}

// checkpoint makes the directory to, which must not exist, a copy of the store, and makes
// sure that one can go on from it.
func (d *DB) checkpoint(to string) error {
	if err := d.use(); err != nil {
		return err
	}
	defer d.done()
	if err := d.beginManifest(); err != nil {
		return err
	}
	if err := d.pebble.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return err
	}
	return verify(d.disk.plain, to)
}

// beginManifest makes Pebble begin a manifest, if it did not since it was opened: until it
// has something to write there, as when it found no log to replay, it has none open, and a
// checkpoint would get an empty one.
func (d *DB) beginManifest() error {
	if d.manifest.Load() {
		return nil
	}
	if err := d.writeMeta(storeFormat); err != nil {
		return err
	}
	return d.pebble.Flush()
}

// verify says why the copy in dir could not be started on: it opens it, reads what the
// store says of itself, and leaves no trace there. Opening finds out whether the manifest
// can be read, whether all tables are there at their length, and reads the log.
func verify(f vfs.FS, dir string) error {
	failed := make(chan error, 1)
	go func() {
		l := &quiet{}
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

func readCopy(f vfs.FS, dir string, l *quiet) error {
	p, err := pebble.Open(dir, &pebble.Options{
		FS: f, ReadOnly: true, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: l,
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}, // the read says it
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

// quiet is the logger of a store that is only looked at. What Pebble calls fatal ends the
// look, not the process, in which another store is at work.
type quiet struct{ fatal error }

func (*quiet) Infof(string, ...any)  {}
func (*quiet) Errorf(string, ...any) {}

func (q *quiet) Fatalf(format string, args ...any) {
	q.fatal = fmt.Errorf(format, args...)
	runtime.Goexit() // it must not return
}
