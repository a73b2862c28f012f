package portable

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline/store"
)

var records = []Record{
	{Group: "index", Key: "https://example.com/", Name: "page", Value: []byte{1, 0, 255}},
	{Group: "a group", Key: "", Name: "empty", Value: []byte{}},
	{Group: "index", Key: "no\xffUTF-8", Name: "a\x00\xfe", Value: []byte("<&>\u2028")},
	{Group: "index\x00documents", Key: "k\xff", Name: "\x00wake", Value: []byte("soon")},
}

// writeExport writes all to a new directory and returns it.
func writeExport(t *testing.T, stateFormat int, all []Record) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "e")
	w, err := Create(dir, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	w.Describe(Manifest{StateFormat: stateFormat, Transport: "local", Lineage: "L", Time: time.Unix(1, 0).UTC()})
	for _, r := range all {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readExport returns all that is in the export in dir.
func readExport(dir string) (all []Record, err error) {
	e, err := Open(dir)
	if err != nil {
		return nil, err
	}
	for r, err := range e.Records() {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// TestRoundTrip: what was added comes back, by group, any bytes in keys, names and values.
func TestRoundTrip(t *testing.T) {
	dir := writeExport(t, store.Format, records)
	got, err := readExport(dir)
	want := []Record{records[0], records[2], records[1], records[3]}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if e.Version != "1.2.3" || e.Format != Format || e.Lineage != "L" || e.States() != 4 {
		t.Errorf("got %+v", e.Manifest)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the export: %v, %v", left, err)
	}
}

// TestNoExport: what was broken off, or is still written, is no export.
func TestNoExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	for range 2 { // the first is as if it had been killed
		w, err := Create(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(records[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is no export of state") {
			t.Errorf("while it is written: got %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(left) != 1 {
			t.Errorf("what was interrupted stays: %v", left)
		}
		defer func() {
			if err := w.Abort(); err != nil {
				t.Error(err)
			}
		}()
	}
	if _, err := Create(filepath.Dir(dir), ""); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("in a directory with files: got %v", err)
	}
}

// TestDamagedExport: a file that is cut off, altered or exchanged is never taken for a whole one.
func TestDamagedExport(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"cut off":   func(b []byte) []byte { return b[:len(b)-3] },
		"half":      func(b []byte) []byte { return b[:len(b)/2] },
		"gone":      func([]byte) []byte { return nil },
		"altered":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"exchanged": nil,
	} {
		dir := writeExport(t, store.Format, records)
		file := filepath.Join(dir, "001.jsonl.zst")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if damage == nil {
			b, err = os.ReadFile(filepath.Join(dir, "002.jsonl.zst"))
		} else {
			b = damage(bytes.Clone(b))
		}
		if err = errors.Join(err, os.WriteFile(file, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := readExport(dir); err == nil || !strings.Contains(err.Error(), "is damaged (001.jsonl.zst: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestManifestIsChecked(t *testing.T) {
	dir := writeExport(t, store.Format, records)
	file := filepath.Join(dir, "manifest.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string][2]string{
		`"format": 1`: {`"format": 2`, "newer version"},
		fmt.Sprintf(`"state_format": %d`, store.Format):  {fmt.Sprintf(`"state_format": %d`, store.Format+1), "newer version"},
		fmt.Sprintf(`"state_format": %d,`, store.Format): {fmt.Sprintf(`"state_format": %d,`, store.Format-1), "older version"},
		`"format": 1,`:    {`"format": 0,`, "is damaged"},
		`"001.jsonl.zst"`: {`"../001.jsonl.zst"`, "is damaged"},
		`{`:               {``, "is damaged"},
	} {
		if err := os.WriteFile(file, bytes.Replace(b, []byte(old), []byte(changed[0]), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), changed[1]) {
			t.Errorf("%s: got %v, want %q", changed[0], err, changed[1])
		}
	}
}

// TestBombs: a small file that unpacks to something large is refused, and takes little memory.
func TestBombs(t *testing.T) {
	dir := writeExport(t, store.Format, records)
	for name, tc := range map[string]struct {
		window, size int
		want         string
	}{
		"a long line":    {1 << 20, maxLine + 1, "a line is longer than 67108864 bytes"},
		"a large window": {64 << 20, 1000, "window size exceeded"},
	} {
		var file bytes.Buffer
		z, err := zstd.NewWriter(&file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(tc.window))
		if err != nil {
			t.Fatal(err)
		}
		piece := bytes.Repeat([]byte("a"), 1<<20)
		if _, err := z.Write([]byte(`{"name":"n","key":"`)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil { // the frame's size is not known now
			t.Fatal(err)
		}
		for n := 0; n < tc.size; n += len(piece) {
			if _, err := z.Write(piece[:min(len(piece), tc.size-n)]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := z.Write([]byte("\"}\n")); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if file.Len() > 64<<10 {
			t.Fatalf("%s: %d bytes are no small file", name, file.Len())
		}
		if err := os.WriteFile(filepath.Join(dir, "001.jsonl.zst"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readExport(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), make([]byte, maxManifest+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readExport(dir); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("a large manifest: got %v", err)
	}
}

// TestTooLargeToRead: what could not be imported is not exported.
func TestTooLargeToRead(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "e"), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	err = w.Add(Record{Group: "g", Key: "k", Name: "n", Value: make([]byte, maxValue+1)})
	if err == nil || !strings.Contains(err.Error(), "at most 41943040") {
		t.Errorf("got %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

// FuzzParseLine: a line never panics, and what it says is written as a line that says the same.
func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		`{"key":"k","name":"n","value":"AA=="}`, `{"key":{"base64":"/w=="},"name":{"base64":"/w=="}}`,
		`{"key":{"base64":1}}`, `{"key":"k"}`, `{} {}`, ``,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseLine("g", b)
		if err != nil {
			return
		}
		l := toLine(r)
		again, err := l.toRecord("g")
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", r, err)
		}
		if again.Value == nil {
			again.Value = r.Value
		}
		if !reflect.DeepEqual(again, r) {
			t.Errorf("got %+v, want %+v", again, r)
		}
	})
}
