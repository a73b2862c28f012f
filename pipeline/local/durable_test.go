package local

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/pipeline/store"
)

// TestNothingIsHandledBeforeItIsDurable: what a handler does about a message can be seen
// outside, also by a host that is asked with a new validator.
func TestNothingIsHandledBeforeItIsDurable(t *testing.T) {
	syncs := make(chan chan struct{}, 1) // holds what the next sync is to wait for
	began := make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		log := strings.HasSuffix(op.Path, ".log")
		if log && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			select {
			case hold := <-syncs:
				close(began)
				<-hold
			default:
			}
		}
		return nil
	}))
	db, err := store.Open(store.Options{Dir: "data", FS: fs, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tr := open(t, Config{Store: db})
	c, err := tr.consumer("g", tr.topic("in"))
	if err != nil {
		t.Fatal(err)
	}

	hold := make(chan struct{})
	syncs <- hold
	published := make(chan error, 1)
	go func() { published <- tr.Publish(t.Context(), text("in", "k", "1", 1)) }()
	<-began
	if err := tr.Unsynced().Publish(t.Context(), text("in", "k", "2", 1)); err != nil {
		t.Fatal(err)
	}
	if e, _, ok := c.cursors[0].inTail(); ok {
		t.Errorf("message %s is handed out before the first is durable", e.Record.ID)
	}
	if tr.Idle() {
		t.Error("idle, though two messages wait")
	}
	close(hold)
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	in := subscribe(t, tr, "g", "in")
	for _, want := range []string{"1", "2"} {
		m := <-in
		if m.UUID != want {
			t.Errorf("got %s, want %s", m.UUID, want)
		}
		m.Ack()
	}
}
