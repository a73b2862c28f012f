package main

import (
	"path/filepath"
	"testing"
)

// TestMeasure measures the program of this repository on a few pages: each must answer 304 in each pass.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the binary")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "vokter-stream")
	if _, err := run(t.Context(), command{args: []string{"go", "build", "-o", binary, "github.com/vokter/vokter/cmd/vokter-stream"}}); err != nil {
		t.Fatal(err)
	}
	s, err := newSite()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r, err := measure(t.Context(), s, vokter(binary), 20, 3, filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if r.unchanged != 60 || r.all != 60 || r.cpu <= 0 {
		t.Errorf("%d answers 304 of %d and %v of processor time, want 60 of 60 and some", r.unchanged, r.all, r.cpu)
	}
}
