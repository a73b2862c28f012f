package store

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestEach: the states of all groups are listed as they were written.
func TestEach(t *testing.T) {
	db := open(t, Options{Lanes: 4})
	states := []Kept{{"", 0, "", "n", []byte{}}, {"g", 3, "k\x00", "a\x00b", []byte("1")}, {"g", 3, "k\x00", "b", []byte("2")}, {"g\x00", 1, "k", "n", []byte("3")}}
	commit(t, db, func(b *Batch) {
		for _, s := range states {
			b.SetState(s.Group, s.Lane, s.Key, s.Name, s.Value)
		}
	})
	var gotStates []Kept
	if err := db.EachState(func(s Kept) error { gotStates = append(gotStates, s); return nil }); err != nil || !reflect.DeepEqual(gotStates, states) {
		t.Errorf("got %v, %v, want %v", gotStates, err, states)
	}
	stop := errors.New("stop")
	if err := db.EachState(func(Kept) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
}

// TestFill: a directory gets all that is written, or nothing.
func TestFill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	state := func(db *DB) error {
		return db.Write(false, func(b *Batch) error { b.SetState("g", 0, "k", "n", []byte("v")); return nil })
	}
	stop := errors.New("stop")
	if err := Fill(Options{Dir: dir}, func(db *DB) error { return errors.Join(state(db), stop) }); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
	wantNoFiles(t, vfs.Default, filepath.Dir(dir), "")
	if err := Fill(Options{Dir: dir, Lanes: 3}, state); err != nil {
		t.Fatal(err)
	}
	db := open(t, Options{Dir: dir})
	if v, ok, err := db.GetState("g", 0, "k", "n"); string(v) != "v" || !ok || err != nil || db.Lanes() != 3 {
		t.Errorf("got %q, %v, %v", v, ok, err)
	}
	mustClose(t, db)
	wantErrorText(t, "in a directory with a store", Fill(Options{Dir: dir}, state), "is not empty")
}
