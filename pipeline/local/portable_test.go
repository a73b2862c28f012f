package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/store"
)

var movedTopics = map[string]Topic{"in": {Groups: []string{"g"}}, "asked": {Groups: []string{"g"}, Ephemeral: true}}

// storeStates makes the group of tr store state for keys, and sets their wakes to at. Nothing that
// is published after it is handled.
func storeStates(t *testing.T, tr *Transport, at time.Time, keys ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in, err := tr.Subscriber("g").Subscribe(ctx, "in")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		publish(t, tr, newMessage("in", key, key, 0))
		msg := <-in
		tx := transactionOf(msg)
		if err := tx.State(key).Set("n", []byte("of "+key)); err != nil {
			t.Fatal(err)
		}
		tx.WakeAt(key, at, flow.AtStart)
		msg.Ack()
	}
	cancel()
	for range in { // until what was acknowledged is committed
	}
}

// exportDir exports the store in dir and returns where to.
func exportDir(t *testing.T, dir string, leave bool) (to string, left []string, err error) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "e")
	w, err := portable.Create(to, "")
	if err != nil {
		t.Fatal(err)
	}
	if left, err = Export(Config{Dir: dir, Topics: movedTopics}, w, leave); err != nil {
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		return to, left, err
	}
	_, err = w.Close()
	return to, left, err
}

// TestMove: another store, with another number of lanes, has what was exported, under an ID of
// its own.
func TestMove(t *testing.T) {
	dir, at := filepath.Join(t.TempDir(), "d"), time.Unix(1<<32, 5).UTC()
	tr := open(t, Config{Dir: dir, Lanes: 3, Topics: movedTopics})
	keys := []string{"a", "b", "c", "d\xff"}
	storeStates(t, tr, at, keys...)
	publish(t, tr, newMessage("asked", "k", "hint", 0))
	mustClose(t, tr)
	e, left, err := exportDir(t, dir, false)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	x, err := portable.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	if x.Lineage != tr.db.ID() || x.Clock.IsZero() {
		t.Errorf("the manifest: got %+v", x.Manifest)
	}
	moved := filepath.Join(t.TempDir(), "m")
	if err := Import(Config{Dir: moved, Lanes: 7}, x); err != nil {
		t.Fatal(err)
	}
	now := open(t, Config{Dir: moved, Topics: movedTopics})
	if now.db.ID() == tr.db.ID() || now.lanes != 7 {
		t.Errorf("the new store has the ID of the old one, or %d lanes", now.lanes)
	}
	if seen, ok, err := now.db.LastSeen(); !seen.Equal(x.Clock) || !ok || err != nil {
		t.Errorf("got %v, %v, want the clock %v", seen, err, x.Clock)
	}
	woken := subscribe(t, now, "g", "in")
	var got []string
	for range keys {
		m := <-woken
		key := m.Metadata[flow.HeaderKey]
		got = append(got, key)
		if v, _, err := transactionOf(m).State(key).Get("n"); string(v) != "of "+key || err != nil || m.Metadata["ce_type"] != flow.TypeWake {
			t.Errorf("%q: got %q, %v, by %v", key, v, err, m.Metadata)
		}
		m.Ack()
	}
	slices.Sort(got)
	if !reflect.DeepEqual(got, keys) {
		t.Errorf("woken at start: %q, want %q", got, keys)
	}
	if err := Import(Config{Dir: moved}, x); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("into a directory that is used: got %v", err)
	}
}

// TestExportWaits: nothing is exported while a message waits, unless that is left behind.
func TestExportWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	tr := open(t, Config{Dir: dir, Topics: movedTopics})
	storeStates(t, tr, time.Unix(1<<32, 0), "k")
	if _, _, err := exportDir(t, dir, false); err == nil || !strings.Contains(err.Error(), "in use by this process") {
		t.Errorf("of a store that is used: got %v", err)
	}
	publish(t, tr, newMessage("in", "k", "1", 0), newMessage("in", "l", "2", 0))
	mustClose(t, tr)
	e, _, err := exportDir(t, dir, false)
	if !errors.Is(err, portable.ErrUnhandled) || !strings.Contains(err.Error(), "messages wait to be handled (2 of in for g): start the pipeline") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(e)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, left, err := exportDir(t, dir, true); err != nil || !slices.Equal(left, []string{"2 of in for g"}) {
		t.Errorf("left behind: got %q, %v", left, err)
	}
}

func TestExportOfNamespaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	db, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	storeStates(t, open(t, Config{Store: db, Namespace: "a", Topics: movedTopics}), time.Unix(1<<32, 0), "k")
	mustClose(t, db)
	if _, _, err := exportDir(t, dir, false); err == nil || !strings.Contains(err.Error(), `(["a"])`) {
		t.Errorf("got %v, want an error that names the Routers", err)
	}
}

// TestImportOfDamage: an export that is damaged leaves no directory.
func TestImportOfDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	tr := open(t, Config{Dir: dir, Topics: movedTopics})
	storeStates(t, tr, time.Unix(1<<32, 0), "k")
	mustClose(t, tr)
	e, _, err := exportDir(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(e, "001.jsonl.zst"), 20); err != nil {
		t.Fatal(err)
	}
	x, err := portable.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "m")
	if err := Import(Config{Dir: to}, x); err == nil || !strings.Contains(err.Error(), "nothing was imported: the export in "+e+" is damaged") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
