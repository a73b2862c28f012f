package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// sent is what BackupTo writes of a store with n entries, the first of them in a table.
func sent(t *testing.T, n uint64) []byte {
	t.Helper()
	dir := t.TempDir()
	d := open(t, Options{Dir: dir})
	for i := range n {
		mustPut(t, d, i)
		if i > 0 {
			continue
		}
		if err := d.pebble.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := d.BackupTo(&out); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, spool+"*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
	return out.Bytes()
}

func TestArchive(t *testing.T) {
	b := sent(t, 50)
	dir := filepath.Join(t.TempDir(), "a", "restored")
	if err := Unpack(bytes.NewReader(b), dir); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: dir})
	if n := counted(t, d); n != 50 {
		t.Errorf("%d entries, want 50", n)
	}
	if err := Unpack(bytes.NewReader(b), dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("unpacking over a store: %v", err)
	}
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
	b := sent(t, 2)
	end := bytes.LastIndex(b, []byte(copyMark)) // the header of the mark begins here
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
		if err := Unpack(bytes.NewReader(b[:n]), dir); err == nil || !strings.Contains(err.Error(), "ends too early") {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(b), err)
		}
	}
	broken := io.MultiReader(bytes.NewReader(b[:end]), iotest.ErrReader(io.ErrClosedPipe))
	if err := Unpack(broken, dir); err == nil {
		t.Error("a reader that failed gave a whole archive")
	}
	if names, err := os.ReadDir(filepath.Dir(dir)); len(names) > 0 || err != nil {
		t.Errorf("cut archives left %v, %v", names, err)
	}
	if err := Unpack(bytes.NewReader(b[:end+512]), dir); err != nil {
		t.Errorf("an archive without its padding: %v", err)
	}
}

// TestStrangeArchive refuses what BackupTo does not write.
func TestStrangeArchive(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	for name, h := range map[string]tar.Header{
		"above":     {Name: "../outside", Typeflag: tar.TypeReg},
		"absolute":  {Name: outside, Typeflag: tar.TypeReg},
		"deeper":    {Name: "a/b", Typeflag: tar.TypeReg},
		"directory": {Name: "a", Typeflag: tar.TypeDir},
		"itself":    {Name: ".", Typeflag: tar.TypeReg},
		"link":      {Name: "a", Typeflag: tar.TypeSymlink, Linkname: outside},
		"sparse":    {Name: "a", Typeflag: tar.TypeReg, Format: tar.FormatPAX, PAXRecords: map[string]string{"VENDOR.abc.size": "1"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{h, {Name: copyMark, Typeflag: tar.TypeReg}} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, w)
		// tar.Writer makes no sparse files, whose size is not that of what follows: forge one.
		forged := bytes.Replace(b.Bytes(), []byte("VENDOR.abc.size"), []byte("GNU.sparse.size"), 1)
		if name == "sparse" && bytes.Equal(forged, b.Bytes()) {
			t.Fatal("nothing was forged")
		}
		err := Unpack(bytes.NewReader(forged), filepath.Join(top, "restored"))
		if err == nil || !strings.Contains(err.Error(), "no backup of a store") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Unpack(strings.NewReader(strings.Repeat("no archive ", 100)), filepath.Join(top, "restored")); err == nil {
		t.Error("any bytes are a backup")
	}
	if names, err := os.ReadDir(top); len(names) > 0 || err != nil {
		t.Errorf("strange archives left %v, %v", names, err)
	}
}

// TestArchiveOfNoStore: the mark alone makes no store.
func TestArchiveOfNoStore(t *testing.T) {
	top := t.TempDir()
	whole := sent(t, 2)
	for name, c := range map[string]struct {
		write func(out *tar.Writer) error
		want  string
	}{
		"the mark alone":   {func(out *tar.Writer) error { return file(out, tar.TypeReg, copyMark, "") }, "holds no MANIFEST-*"},
		"a stray file":     {func(out *tar.Writer) error { return files(out, "notes.txt", copyMark) }, "holds no MANIFEST-*"},
		"no marker":        {func(out *tar.Writer) error { return files(out, "MANIFEST-000001", copyMark) }, "holds no marker.manifest.*"},
		"twice":            {func(out *tar.Writer) error { return files(out, "a", "a", copyMark) }, `holds "a" twice`},
		"the mark a link":  {func(out *tar.Writer) error { return file(out, tar.TypeSymlink, copyMark, "") }, "holds \"VOKTER-COPY\""},
		"the mark a place": {func(out *tar.Writer) error { return file(out, tar.TypeDir, copyMark, "") }, "holds \"VOKTER-COPY\""},
		"a mark with text": {func(out *tar.Writer) error { return file(out, tar.TypeReg, copyMark, "x") }, "its VOKTER-COPY has 1 bytes"},
		"without a table":  {without(whole, ".sst"), "the copy is not whole ("},
		"without its log":  {without(whole, ".log"), "holds no *.log"},
	} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		if err := c.write(out); err != nil {
			t.Fatal(err)
		}
		mustClose(t, out)
		err := Unpack(&b, filepath.Join(top, "restored"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if names, err := os.ReadDir(top); len(names) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// without writes the files of an archive but those whose names end with suffix.
func without(archive []byte, suffix string) func(out *tar.Writer) error {
	return func(out *tar.Writer) error {
		in := tar.NewReader(bytes.NewReader(archive))
		for {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if strings.HasSuffix(h.Name, suffix) {
				continue
			}
			if err := out.WriteHeader(h); err != nil {
				return err
			}
			if _, err := io.Copy(out, in); err != nil {
				return err
			}
		}
	}
}

func files(out *tar.Writer, names ...string) error {
	for _, n := range names {
		if err := file(out, tar.TypeReg, n, ""); err != nil {
			return err
		}
	}
	return nil
}

func file(out *tar.Writer, kind byte, name, body string) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Size: int64(len(body))}); err != nil {
		return err
	}
	_, err := io.WriteString(out, body)
	return err
}

// TestOpenSweepsSpools: what a process that died left of a copy that it sent is removed.
func TestOpenSweepsSpools(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, spool+"LEFT")
	if err := os.Mkdir(left, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "000001.sst"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Dir: dir})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if err := d.BackupTo(refusing{}); err == nil || !strings.Contains(err.Error(), "broken off") {
		t.Errorf("a writer that fails: %v", err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, spool+"*")); len(names) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", names, err)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
