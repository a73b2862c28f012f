package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// backupArchive is what BackupTo writes of a store with n entries, the first of them in a table.
func backupArchive(t *testing.T, n uint64) []byte {
	t.Helper()
	dir := t.TempDir()
	d := open(t, Options{Dir: dir})
	mustPutEntries(t, d, 0, 1)
	flush(t, d)
	mustPutEntries(t, d, 1, n)
	var out bytes.Buffer
	if err := d.BackupTo(&out); err != nil {
		t.Fatal(err)
	}
	wantNoFiles(t, vfs.Default, dir, spoolPrefix)
	return out.Bytes()
}

func TestArchive(t *testing.T) {
	b := backupArchive(t, 50)
	dir := filepath.Join(t.TempDir(), "a", "restored")
	if err := Unpack(bytes.NewReader(b), dir); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: dir})
	if n := countEntries(t, d); n != 50 {
		t.Errorf("%d entries, want 50", n)
	}
	wantErrorText(t, "over a store", Unpack(bytes.NewReader(b), dir), "is not empty")
	again := filepath.Join(t.TempDir(), "again")
	if err := Unpack(bytes.NewReader(b), again); err != nil {
		t.Fatal(err)
	}
	if open(t, Options{Dir: again}).ID() == d.ID() {
		t.Error("two stores from one archive have one ID")
	}
}

// TestCutArchive cuts an archive short: between its files, in their middle and in their
// headers.
func TestCutArchive(t *testing.T) {
	b := backupArchive(t, 2)
	end := bytes.LastIndex(b, []byte(copyMarker)) // the header of the marker begins here
	if end < 512 {
		t.Fatalf("an archive of %d bytes with its mark at %d", len(b), end)
	}
	cuts := []int{0, 1, end + 1, end + 511}
	for n := 100; n <= end; n += 412 { // 512 without an odd factor in common
		cuts = append(cuts, n)
	}
	for n := 512; n <= end; n += 512 {
		cuts = append(cuts, n)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	for _, n := range cuts {
		wantErrorText(t, fmt.Sprintf("cut after %d of %d bytes", n, len(b)), Unpack(bytes.NewReader(b[:n]), dir), "ends too early")
	}
	broken := io.MultiReader(bytes.NewReader(b[:end]), iotest.ErrReader(io.ErrClosedPipe))
	if err := Unpack(broken, dir); err == nil {
		t.Error("a reader that failed gave a whole archive")
	}
	wantNoFiles(t, vfs.Default, filepath.Dir(dir), "")
	if err := Unpack(bytes.NewReader(b[:end+512]), dir); err != nil {
		t.Errorf("an archive without its padding: %v", err)
	}
}

// TestStrangeArchive refuses what BackupTo does not write, and what is no whole store.
func TestStrangeArchive(t *testing.T) {
	top, whole := t.TempDir(), backupArchive(t, 2)
	outside := filepath.Join(top, "outside")
	// tar.Writer makes no sparse files, whose size is not that of what follows: forge one.
	sparse := bytes.Replace(newArchive(t, tar.Header{Name: "a", Format: tar.FormatPAX, PAXRecords: map[string]string{"VENDOR.abc.size": "1"}}),
		[]byte("VENDOR.abc.size"), []byte("GNU.sparse.size"), 1)
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"any bytes":        {[]byte(strings.Repeat("no archive ", 100)), ""},
		"above":            {newArchive(t, tar.Header{Name: "../outside"}), `it holds "../outside"`},
		"absolute":         {newArchive(t, tar.Header{Name: outside}), fmt.Sprintf("it holds %q", outside)},
		"deeper":           {newArchive(t, tar.Header{Name: "a/b"}), `it holds "a/b"`},
		"directory":        {newArchive(t, tar.Header{Name: "a", Typeflag: tar.TypeDir}), `it holds "a"`},
		"itself":           {newArchive(t, tar.Header{Name: "."}), `it holds "."`},
		"link":             {newArchive(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: outside}), `it holds "a"`},
		"sparse":           {sparse, `it holds "a"`},
		"the mark alone":   {newArchive(t), "it holds no MANIFEST-*"},
		"a stray file":     {newArchive(t, tar.Header{Name: "notes.txt"}), "it holds no MANIFEST-*"},
		"no marker":        {newArchive(t, tar.Header{Name: "MANIFEST-000001"}), "it holds no marker.manifest.*"},
		"twice":            {newArchive(t, tar.Header{Name: "a"}, tar.Header{Name: "a"}), `it holds "a" twice`},
		"the mark a link":  {newArchive(t, tar.Header{Name: copyMarker, Typeflag: tar.TypeSymlink}), `it holds "VOKTER-COPY"`},
		"the mark a place": {newArchive(t, tar.Header{Name: copyMarker, Typeflag: tar.TypeDir}), `it holds "VOKTER-COPY"`},
		"a mark with text": {newArchive(t, tar.Header{Name: copyMarker, Size: 1}), "its VOKTER-COPY has 1 bytes"},
		"without its log":  {archiveWithout(t, whole, ".log"), "it holds no *.log"},
	} {
		wantErrorText(t, name, Unpack(bytes.NewReader(c.archive), filepath.Join(top, "restored")), "this is no backup of a store: "+c.want)
	}
	err := Unpack(bytes.NewReader(archiveWithout(t, whole, ".sst")), filepath.Join(top, "restored"))
	wantErrorText(t, "without a table", err, "the copy is not whole (")
	wantNoFiles(t, vfs.Default, top, "")
}

// newArchive is an archive of files with these headers and copyMarker.
func newArchive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range append(headers, tar.Header{Name: copyMarker}) {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, w)
	return b.Bytes()
}

// archiveWithout is an archive without the files whose names end with suffix.
func archiveWithout(t *testing.T, archive []byte, suffix string) []byte {
	t.Helper()
	var b bytes.Buffer
	in, out := tar.NewReader(bytes.NewReader(archive)), tar.NewWriter(&b)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, suffix) {
			continue
		}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, in); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, out)
	return b.Bytes()
}

// TestOpenSweepsSpools: what a process that died left of a copy that it sent is removed.
func TestOpenSweepsSpools(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, spoolPrefix+"LEFT")
	if err := os.Mkdir(left, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "000001.sst"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: dir})
	wantNoFiles(t, vfs.Default, dir, spoolPrefix)
	wantErrorText(t, "a writer that fails", d.BackupTo(failingWriter{}), "broken off")
	wantNoFiles(t, vfs.Default, dir, spoolPrefix)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
