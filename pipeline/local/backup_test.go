package local

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline/store"
)

// TestBackup: a copy goes on where the original stood, and its messages have positions of
// their own from the first one that it takes in.
func TestBackup(t *testing.T) {
	top := t.TempDir()
	topics := map[string]Topic{"t": {Groups: []string{"g"}}}
	tr := open(t, Config{Dir: filepath.Join(top, "data"), Lanes: 1, Topics: topics})
	for _, id := range []string{"done", "open"} {
		if err := tr.Publish(t.Context(), text("t", "k", id, 0)); err != nil {
			t.Fatal(err)
		}
	}
	ch := subscribe(t, tr, "g", "t")
	(<-ch).Ack()
	next := <-ch // so the first is committed
	original := positionOf(next)
	copies := []string{filepath.Join(top, "copy"), filepath.Join(top, "unpacked")}
	if err := tr.db.Backup(copies[0]); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := tr.BackupTo(&archive); err != nil {
		t.Fatal(err)
	}
	if err := store.Unpack(&archive, copies[1]); err != nil {
		t.Fatal(err)
	}
	next.Ack()
	seen := []string{original}
	for _, dir := range copies {
		c := open(t, Config{Dir: dir, Topics: topics})
		msg := <-subscribe(t, c, "g", "t")
		position := positionOf(msg)
		if msg.UUID != "open" || slices.Contains(seen, position) {
			t.Errorf("%s goes on with %s at %s; others stand at %q", dir, msg.UUID, position, seen)
		}
		seen = append(seen, position)
		msg.Ack()
	}
}
