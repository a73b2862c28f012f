package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline/store"
)

// Format is the version of the files that this package writes.
const Format = 1

const manifestName = "manifest.json"

// Manifest describes an export.
type Manifest struct {
	// Format is the version of the files, StateFormat the version of the values; see
	// store.Format.
	Format      int `json:"format"`
	StateFormat int `json:"state_format"`
	// Version is the version of the program that wrote it.
	Version string `json:"version,omitempty"`
	// Transport names the transport that was exported. Lineage is the beginning of its message
	// positions.
	Transport string `json:"transport"`
	Lineage   string `json:"lineage"`
	// Time is when it was exported. Clock is the latest time that the pipeline saw, or zero if
	// that is not known. Wakes that are not due are after Clock.
	Time  time.Time `json:"time"`
	Clock time.Time `json:"clock,omitzero"`
	// Groups describes the files, one for each group.
	Groups []Group `json:"groups"`
}

// Group describes the file of one group.
type Group struct {
	Group string `json:"group"`
	File  string `json:"file"`
	// States is how many lines are in the file.
	States int `json:"states"`
}

// States is how many values all groups have.
func (m Manifest) States() int {
	n := 0
	for _, g := range m.Groups {
		n += g.States
	}
	return n
}

// ErrUnhandled says that messages wait, so that nothing was exported. An export can leave them behind.
var ErrUnhandled = errors.New("messages wait to be handled")

// Unhandled returns an ErrUnhandled with waiting, which has a line for each topic and group.
func Unhandled(waiting []string) error {
	return fmt.Errorf("nothing was exported, since %w (%s): start the pipeline, let it end in order once nothing waits, and export again",
		ErrUnhandled, strings.Join(waiting, ", "))
}

// readManifest returns the manifest of the export in dir, if this program can read it.
func readManifest(dir string) (m Manifest, err error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no export of state: it has no %s", dir, manifestName)
	}
	if err != nil {
		return m, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return m, err
	}
	if len(b) > maxManifest {
		return m, damagedError(dir, manifestName, fmt.Errorf("it is longer than %d bytes", maxManifest))
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, damagedError(dir, manifestName, err)
	}
	switch {
	case m.Format > Format:
		return m, fmt.Errorf("%s was written by a newer version of Vokter (format %d, this one knows %d): use that version", dir, m.Format, Format)
	case m.StateFormat > store.Format:
		return m, fmt.Errorf("the state in %s was written by a newer version of Vokter (format %d, this one knows %d): use that version",
			dir, m.StateFormat, store.Format)
	case m.StateFormat >= 0 && m.StateFormat < store.Format:
		return m, fmt.Errorf("the state in %s was written by an older version of Vokter (format %d, this one needs %d): use that version",
			dir, m.StateFormat, store.Format)
	case m.Format < 1 || m.StateFormat < 0:
		return m, damagedError(dir, manifestName, fmt.Errorf("format %d, state_format %d", m.Format, m.StateFormat))
	}
	for _, g := range m.Groups {
		if g.File != filepath.Base(g.File) || !filepath.IsLocal(g.File) {
			return m, damagedError(dir, manifestName, fmt.Errorf("it names the file %q", g.File))
		}
	}
	return m, nil
}

// damagedError returns the error that a file of an export is damaged.
func damagedError(dir, name string, err error) error {
	return fmt.Errorf("the export in %s is damaged (%s: %w): export again", dir, name, err)
}

// Record is one value of a group's state.
type Record struct {
	// Group and Key are those that the record belongs to.
	Group, Key string
	// Name is not empty.
	Name  string
	Value []byte
}

// line is a Record in a file.
type line struct {
	Key   bytesText `json:"key"`
	Name  bytesText `json:"name,omitzero"`
	Value []byte    `json:"value,omitempty"`
}

var errLine = errors.New("a line is no value of a state")

func toLine(r Record) line {
	return line{Key: bytesText(r.Key), Name: bytesText(r.Name), Value: r.Value}
}

// parseLine reads one line of the file of group.
func parseLine(group string, b []byte) (Record, error) {
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	var l line
	if err := in.Decode(&l); err != nil {
		return Record{}, err
	}
	if _, err := in.Token(); err != io.EOF {
		return Record{}, errLine
	}
	return l.toRecord(group)
}

// toRecord is the inverse of toLine.
func (l line) toRecord(group string) (Record, error) {
	if l.Name == "" {
		return Record{}, errLine
	}
	value := append([]byte{}, l.Value...) // an empty value is a value
	return Record{Group: group, Key: string(l.Key), Name: string(l.Name), Value: value}, nil
}

// bytesText holds any bytes. In JSON it is a string if they are UTF-8, and otherwise an object.
type bytesText string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON encodes t.
func (t bytesText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

// UnmarshalJSON decodes t.
func (t *bytesText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e base64Text
		err := json.Unmarshal(b, &e)
		*t = bytesText(e.Base64)
		return err
	}
	var s string
	err := json.Unmarshal(b, &s)
	*t = bytesText(s)
	return err
}
