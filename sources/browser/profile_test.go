package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// useTempDir makes a short directory for temporary files, which is used from then on.
func useTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "v")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// fileNames returns the names of the entries of dir.
func fileNames(t *testing.T, dir string) (names []string) {
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
	dir := useTempDir(t)
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
	elsewhere := filepath.Join(dir, profilePrefix+"link")
	for _, err := range []error{os.Mkdir(other, 0o700), os.Symlink(other, elsewhere), os.Mkdir(filepath.Join(dir, profilePrefix+"unlocked"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	removeAbandonedProfiles()
	want := []string{"another-program", filepath.Base(used.dir), profilePrefix + "link", profilePrefix + "unlocked"}
	slices.Sort(want)
	if got := fileNames(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	used.remove()
	if slices.Contains(fileNames(t, dir), filepath.Base(used.dir)) {
		t.Error("a profile that is not used any more is still there")
	}
}
