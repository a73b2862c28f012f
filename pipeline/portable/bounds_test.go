package portable

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline/store"
)

// TestBombs: a small file that unpacks to something large is refused, and takes little memory.
func TestBombs(t *testing.T) {
	dir := exported(t, store.Format, records)
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
		if _, err := read(dir, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), make([]byte, maxManifest+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir, nil); err == nil || !strings.Contains(err.Error(), "is longer than") {
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
		`{"key":"k","name":"n","value":"AA=="}`, `{"topic":"t","key":{"base64":"/w=="},"at":"2026-01-31T15:04:05Z","at_start":true}`,
		`{"key":{"base64":1}}`, `{"at":"0001-01-01T00:00:00Z"}`, `{} {}`, ``,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseLine("g", b)
		if err != nil {
			return
		}
		l := lineOf(r)
		again, err := l.record("g")
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", r, err)
		}
		if !again.At.Equal(r.At) {
			t.Errorf("got the time %v, want %v", again.At, r.At)
		}
		again.At = r.At
		if again.Value == nil {
			again.Value = r.Value
		}
		if !reflect.DeepEqual(again, r) {
			t.Errorf("got %+v, want %+v", again, r)
		}
	})
}
