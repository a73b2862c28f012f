package store

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

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
