package portable

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
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
	dir string
}

// Open opens the export in dir. Errors say what to do.
func Open(dir string) (*Export, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	return &Export{m, dir}, nil
}

// Records yields all records of the export. A file that is
// incomplete or cannot be read ends the iteration with an error. Use the records only if it
// ends without one.
func (e *Export) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, g := range e.Groups {
			if more, err := e.readGroup(g, yield); err != nil {
				yield(Record{}, damagedError(e.dir, g.File, err))
				return
			} else if !more {
				return
			}
		}
	}
}

// readGroup yields the records of g.
func (e *Export) readGroup(g Group, yield func(Record, error) bool) (more bool, err error) {
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
		read.States++
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
		return false, fmt.Errorf("it holds %d values, not %d", read.States, g.States)
	}
	return true, nil
}
