package portable

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// partialInfix stands in the name of an incomplete export, before a unique part.
const partialInfix = ".partial-"

// Writer writes an export. It is for one goroutine at a time.
type Writer struct {
	dir, temp string
	version   string
	manifest  Manifest
	groups    map[string]*groupFile
	order     []*groupFile
}

// groupFile is the file of one group.
type groupFile struct {
	Group
	file    *os.File
	buf     *bufio.Writer
	encoder *zstd.Encoder
	json    *json.Encoder
}

// Create begins an export to dir, which must be empty or missing. It stays so until Close.
// version is the version of the program. Errors say what to do.
func Create(dir, version string) (*Writer, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("nothing was exported: %s is not empty: name a directory that is empty or does not exist yet", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("nothing was exported: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := removePartial(dir + partialInfix); err != nil {
		return nil, fmt.Errorf("nothing was exported: %w", err)
	}
	temp := dir + partialInfix + rand.Text()
	if err := os.MkdirAll(temp, 0o750); err != nil {
		return nil, fmt.Errorf("nothing was exported: %w", err)
	}
	return &Writer{dir: dir, temp: temp, version: version, groups: make(map[string]*groupFile)}, nil
}

// removePartial removes the files of interrupted exports: those whose names begin with prefix.
func removePartial(prefix string) error {
	left, err := filepath.Glob(escapeGlob(prefix) + "*")
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// escapeGlob returns a glob pattern that only name matches.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// Scratch returns the path of a temporary directory beside the export. The caller may create
// it; Close and Abort remove it.
func (w *Writer) Scratch() string { return filepath.Join(w.temp, "scratch") }

// Describe sets the manifest to m, except its Format, Version and Groups.
func (w *Writer) Describe(m Manifest) { w.manifest = m }

// Add writes r.
func (w *Writer) Add(r Record) error {
	if len(r.Value) > maxValue {
		return fmt.Errorf("state %q of key %q has %d bytes, and an export holds at most %d for each", r.Name, r.Key, len(r.Value), maxValue)
	}
	g, err := w.groupFileFor(r.Group)
	if err != nil {
		return err
	}
	g.States++
	return g.json.Encode(toLine(r))
}

// groupFileFor returns the file of the group name, and creates it if there is none.
func (w *Writer) groupFileFor(name string) (*groupFile, error) {
	if g := w.groups[name]; g != nil {
		return g, nil
	}
	g := &groupFile{Group: Group{Group: name, File: fmt.Sprintf("%03d.jsonl.zst", len(w.order)+1)}}
	var err error
	if g.file, err = os.OpenFile(filepath.Join(w.temp, g.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640); err != nil {
		return nil, err
	}
	g.buf = bufio.NewWriterSize(g.file, 1<<16)
	if g.encoder, err = zstd.NewWriter(g.buf, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true)); err != nil {
		return nil, errors.Join(err, g.file.Close())
	}
	g.json = json.NewEncoder(g.encoder)
	g.json.SetEscapeHTML(false)
	w.groups[name] = g
	w.order = append(w.order, g)
	return g, nil
}

func (g *groupFile) close() error {
	return errors.Join(g.encoder.Close(), g.buf.Flush(), g.file.Sync(), g.file.Close())
}

// Close completes the export, makes it durable and returns its manifest. After an error there
// is no export.
func (w *Writer) Close() (Manifest, error) {
	m := w.manifest
	m.Format, m.Version, m.Groups = Format, w.version, []Group{}
	var err error
	for _, g := range w.order {
		err = errors.Join(err, g.close())
		m.Groups = append(m.Groups, g.Group)
	}
	w.order = nil
	if err == nil {
		err = w.finish(m)
	}
	return m, errors.Join(err, w.Abort())
}

// finish writes the manifest and moves the directory to its place.
func (w *Writer) finish(m Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(w.Scratch()); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.temp, manifestName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close(), syncDir(w.temp)); err != nil {
		return err
	}
	if err := os.Remove(w.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(w.temp, w.dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(w.dir))
}

// Abort removes the incomplete export. It does nothing after a successful Close, and may be
// called twice.
func (w *Writer) Abort() error {
	var err error
	for _, g := range w.order {
		err = errors.Join(err, g.encoder.Close(), g.file.Close())
	}
	w.order = nil
	return errors.Join(err, os.RemoveAll(w.temp))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
