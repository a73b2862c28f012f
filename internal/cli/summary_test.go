package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFileThroughALink(t *testing.T) {
	target := file(t, "target", "before, and longer")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := checkSummary(link); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, []byte("after")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "after" {
		t.Errorf("got %q, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

func TestCheckSummaryLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := checkSummary(filepath.Join(dir, "s.json")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
