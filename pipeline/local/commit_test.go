package local

import (
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
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

// TestBare reads messages from their transactions, with and without metadata beside that, one
// of them published with Watermill's interface.
func TestBare(t *testing.T) {
	for _, bare := range []bool{true, false} {
		tr, err := Open(Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Start(t.Context(), flow.Wiring{Bare: bare}); err != nil {
			t.Fatal(err)
		}
		header := map[string]string{"a": "1"}
		if err := tr.Publish(t.Context(), flow.Message{ID: "1", Topic: "in", Key: "k", Type: "x", Header: header, Body: []byte("b")}); err != nil {
			t.Fatal(err)
		}
		header["a"] = "the publisher's own"
		plain := message.NewMessage("2", nil)
		plain.Metadata.Set("a", "2")
		plain.Metadata.Set(flow.HeaderKey, "k")
		if err := tr.Publisher().Publish("in", plain); err != nil {
			t.Fatal(err)
		}
		in, err := tr.Subscriber("g").Subscribe(t.Context(), "in")
		if err != nil {
			t.Fatal(err)
		}

		wm := <-in
		m, err := transactionOf(wm).Message()
		if err != nil || m.ID != "1" || m.Topic != "in" || m.Key != "k" || m.Header["a"] != "1" || m.Position == "" {
			t.Errorf("bare %t: the transaction has %+v, %v", bare, m, err)
		}
		if wm.UUID != "1" || string(wm.Payload) != "b" || (len(wm.Metadata) == 0) != bare {
			t.Errorf("bare %t: got %s %q with metadata %v", bare, wm.UUID, wm.Payload, wm.Metadata)
		}
		m.Header["a"] = "the handler's own"
		if m, _ := transactionOf(wm).Message(); m.Header["a"] != "1" {
			t.Errorf("bare %t: a handler changed the message of the next attempt", bare)
		}
		wm.Ack()

		wm = <-in
		m, err = transactionOf(wm).Message()
		if class, _ := failure.ClassOf(err); class != failure.ClassPermanent || m.ID != "2" || m.Header["a"] != "2" {
			t.Errorf("bare %t: a message without type is %+v, %v", bare, m, err)
		}
		if (wm.Metadata["a"] == "2") == bare {
			t.Errorf("bare %t: got metadata %v", bare, wm.Metadata)
		}
		wm.Ack()
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// transactionOf returns the transaction that a message's context carries.
func transactionOf(m *message.Message) flow.Tx {
	tx, _ := flow.TxFrom(m.Context())
	return tx
}

// positionOf returns the place of a message in its log.
func positionOf(m *message.Message) string {
	tx := transactionOf(m)
	if tx == nil {
		return ""
	}
	got, _ := tx.Message()
	return got.Position
}
