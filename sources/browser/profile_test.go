package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// temporary makes a short directory for temporary files, which is used from then on.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "v")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// files returns the names of the entries of dir.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestSweep removes the profile of a process that is gone, and nothing else.
func TestSweep(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("profiles are locked on Linux only")
	}
	dir := temporary(t)
	used, err := newProfile()
	if err != nil {
		t.Fatal(err)
	}
	left, err := newProfile()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left.dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	left.lock.Close() // as the kernel does when a process is killed
	other := filepath.Join(dir, "another-program")
	elsewhere := filepath.Join(dir, profileName+"link")
	for _, err := range []error{os.Mkdir(other, 0o700), os.Symlink(other, elsewhere), os.Mkdir(filepath.Join(dir, profileName+"unlocked"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	want := []string{"another-program", filepath.Base(used.dir), profileName + "link", profileName + "unlocked"}
	slices.Sort(want)
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	used.remove()
	if slices.Contains(files(t, dir), filepath.Base(used.dir)) {
		t.Error("a profile that is not used any more is still there")
	}
}
