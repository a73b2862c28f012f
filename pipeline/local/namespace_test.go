package local

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

// TestNamespaces: two transports over one store share nothing, not even the positions of
// their messages, and one that drops its groups leaves the other's alone.
func TestNamespaces(t *testing.T) {
	db := memory(t)
	topics := map[string]Topic{"t": {Groups: []string{"g"}}}
	a := open(t, Config{Store: db, Namespace: "a", Topics: topics})
	b := open(t, Config{Store: db, Namespace: "b", Topics: topics})
	for name, tr := range map[string]*Transport{"in a": a, "in b": b} {
		if err := tr.Publish(t.Context(), text("t", "k", name, 0)); err != nil {
			t.Fatal(err)
		}
	}
	positions := map[string]bool{}
	for name, tr := range map[string]*Transport{"in a": a, "in b": b} {
		msg := <-subscribe(t, tr, "g", "t")
		if msg.UUID != name {
			t.Errorf("got %s, want %s", msg.UUID, name)
		}
		position := positionOf(msg)
		positions[position] = true
		if flow.Lineage(position) != tr.db.ID() {
			t.Errorf("the lineage of %s is not %s", position, tr.db.ID())
		}
		tx, _ := flow.TxFrom(msg.Context())
		if err := tx.State("k").Set("n", []byte(name)); err != nil {
			t.Fatal(err)
		}
		msg.Ack()
	}
	if len(positions) != 2 {
		t.Errorf("the first messages of both stand at %v", positions)
	}
	for _, tr := range []*Transport{a, b} {
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a = open(t, Config{Store: db, Namespace: "a", Topics: map[string]Topic{"t": {Groups: []string{"other"}}}})
	b = open(t, Config{Store: db, Namespace: "b", Topics: topics})
	if _, ok, err := a.State("g", "k").Get("n"); ok || err != nil {
		t.Errorf("a group that is not declared any more keeps its state (%v)", err)
	}
	if v, _, err := b.State("g", "k").Get("n"); string(v) != "in b" || err != nil {
		t.Errorf("the other namespace's group was dropped, too: got %q, %v", v, err)
	}
}

// TestNamespaceIsUsedOnce: until it is closed.
func TestNamespaceIsUsedOnce(t *testing.T) {
	db := memory(t)
	first := open(t, Config{Store: db, Namespace: "a"})
	if _, err := Open(Config{Store: db, Namespace: "a"}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("got %v, want an error that names the namespace", err)
	}
	open(t, Config{Store: db})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Store: db, Namespace: "a"})
}

// TestDiskOfAStore: the disk of a given store is watched by each of its transports.
func TestDiskOfAStore(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(store.Options{Dir: dir, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, name := range []string{"a", "b"} {
		looked := make(chan string, 10)
		tr := open(t, Config{Store: db, Namespace: name, MinFree: 1000, Free: func(dir string) (int64, error) {
			select {
			case looked <- dir:
			default:
			}
			return 999, nil
		}})
		if got := <-looked; got != dir || tr.Ready() == nil {
			t.Errorf("%s looks at %q, and says %v", name, got, tr.Ready())
		}
	}
}
