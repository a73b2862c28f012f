package portable

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline/store"
)

// Limits for reading, in bytes. A small file can unpack to any size.
const (
	maxWindow   = 8 << 20 // the Writer's is 4 MiB
	maxLine     = 64 << 20
	maxValue    = 40 << 20 // leaves room in a line for base64, which is a third longer, and the key
	maxManifest = 1 << 20
)

// Export is an export to read.
type Export struct {
	// Manifest describes it.
	Manifest
	dir        string
	migrations map[int][]store.Migration
}

// Open opens the export in dir. Migrations convert values of an older format, as in
// store.Options. Errors say what to do.
func Open(dir string, migrations map[int][]store.Migration) (*Export, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	for f := m.StateFormat; f < store.Format; f++ {
		if _, ok := migrations[f]; !ok {
			return nil, fmt.Errorf("the state in %s is of format %d, which this program cannot bring to format %d; use the version of Vokter that wrote it",
				dir, f, f+1)
		}
	}
	return &Export{m, dir, migrations}, nil
}

// Records yields all records of the export, with values in the current format. A file that is
// incomplete or cannot be read ends the iteration with an error. Use the records only if it
// ends without one.
func (e *Export) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, g := range e.Groups {
			if more, err := e.group(g, yield); err != nil {
				yield(Record{}, damaged(e.dir, g.File, err))
				return
			} else if !more {
				return
			}
		}
	}
}

// group yields the records of g.
func (e *Export) group(g Group, yield func(Record, error) bool) (more bool, err error) {
	f, err := os.Open(filepath.Join(e.dir, g.File))
	if err != nil {
		return false, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return false, err
	}
	defer z.Close()
	in := bufio.NewScanner(z)
	in.Buffer(nil, maxLine)
	read := Group{Group: g.Group, File: g.File}
	for in.Scan() {
		r, err := parseLine(g.Group, in.Bytes())
		if err != nil {
			return false, err
		}
		if r.IsWake() {
			read.Wakes++
		} else {
			read.States++
			if r.Value, err = e.migrate(r); err != nil {
				return false, err
			}
			if r.Value == nil {
				continue
			}
		}
		if !yield(r, nil) {
			return false, nil
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return false, fmt.Errorf("a line is longer than %d bytes", maxLine)
	case err != nil:
		return false, err
	case read != g:
		return false, fmt.Errorf("it holds %d states and %d wakes, not %d and %d", read.States, read.Wakes, g.States, g.Wakes)
	}
	return true, nil
}

// migrate returns the value of r in the current format, or nil if that format does not have it.
func (e *Export) migrate(r Record) ([]byte, error) {
	value := r.Value
	for f := e.StateFormat; f < store.Format; f++ {
		for _, m := range e.migrations[f] {
			if m.Group != r.Group || value == nil {
				continue
			}
			var err error
			if value, err = m.Convert(r.Key, r.Name, value); err != nil {
				return nil, fmt.Errorf("bringing it from format %d to %d: state %q of key %q: %w", f, f+1, r.Name, r.Key, err)
			}
		}
	}
	return value, nil
}
