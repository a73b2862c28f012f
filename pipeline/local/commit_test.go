package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// slowDisk is a store with one lane whose next write to the disk can be held up.
type slowDisk struct {
	*store.DB
	holds chan chan struct{} // what the next sync waits for
	began chan struct{}      // has a token when a sync is held up
	syncs atomic.Int64
}

func newSlowDisk(t *testing.T) *slowDisk {
	t.Helper()
	d := &slowDisk{holds: make(chan chan struct{}, 1), began: make(chan struct{}, 1)}
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		log := strings.HasSuffix(op.Path, ".log")
		if log && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			d.syncs.Add(1)
			select {
			case hold := <-d.holds:
				d.began <- struct{}{}
				<-hold
			default:
			}
		}
		return nil
	}))
	var err error
	if d.DB, err = store.Open(store.Options{Dir: "data", FS: fs, Lanes: 1, Gather: time.Hour}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// hold holds up the next sync until the function is called.
func (d *slowDisk) hold() (release func()) {
	c := make(chan struct{})
	d.holds <- c
	return sync.OnceFunc(func() { close(c) })
}

// TestNothingIsHandledBeforeItIsDurable: what a handler does about a message can be seen
// outside, also by a host that is asked with a new validator.
func TestNothingIsHandledBeforeItIsDurable(t *testing.T) {
	db := newSlowDisk(t)
	tr := open(t, Config{Store: db.DB})
	c, err := tr.consumer("g", tr.topic("in"))
	if err != nil {
		t.Fatal(err)
	}

	release := db.hold()
	published := make(chan error, 1)
	go func() { published <- tr.Publish(t.Context(), newMessage("in", "k", "1", 1)) }()
	<-db.began
	if err := tr.Unsynced().Publish(t.Context(), newMessage("in", "k", "2", 1)); err != nil {
		t.Fatal(err)
	}
	if e, _, ok := c.cursors[0].peekTail(); ok {
		t.Errorf("message %s is handed out before the first is durable", e.Record.ID)
	}
	if tr.Idle() {
		t.Error("idle, though two messages wait")
	}
	release()
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

// TestALaneGoesOnWhileTheDiskWrites: it handles messages of other keys while a commit waits for the
// disk. The OnCommit functions run when that commit is durable, all in the order of the messages,
// and the next message of its key, Idle and the end of the subscription wait for them. One more
// write to the disk serves all that were handled meanwhile.
func TestALaneGoesOnWhileTheDiskWrites(t *testing.T) {
	db := newSlowDisk(t)
	tr := open(t, Config{Store: db.DB})
	const others = 20
	ms := []flow.Message{newMessage("in", "first", "0", 1)}
	for i := range others {
		ms = append(ms, newMessage("in", fmt.Sprint("k", i), fmt.Sprint(i+1), 1))
	}
	ms = append(ms, newMessage("in", "first", "again", 1), newMessage("in", fmt.Sprint("k", others-1), "last", 1))
	publish(t, tr, ms...)
	in := subscribe(t, tr, "g", "in")
	release := db.hold()
	defer release()
	before := db.syncs.Load()
	var mu sync.Mutex
	var committed []string
	take := func(want string, sync bool) {
		t.Helper()
		m := <-in
		if m.UUID != want {
			t.Fatalf("got message %s, want %s", m.UUID, want)
		}
		tx := transactionOf(m)
		tx.OnCommit(func() {
			mu.Lock()
			defer mu.Unlock()
			committed = append(committed, want)
		})
		if sync {
			tx.Sync()
		}
		m.Ack()
	}
	take("0", true)
	<-db.began
	var want []string
	for i := range others {
		take(fmt.Sprint(i+1), i%2 == 0)
	}
	for i := range others + 1 {
		want = append(want, fmt.Sprint(i))
	}
	select {
	case m := <-in:
		t.Fatalf("message %s is handled before the last commit of its key is durable", m.UUID)
	case <-time.After(10 * time.Millisecond):
	}
	mu.Lock()
	if len(committed) > 0 {
		t.Errorf("the OnCommit functions of %q ran before the commits are durable", committed)
	}
	mu.Unlock()
	if tr.Idle() {
		t.Error("idle, though commits wait for the disk")
	}
	release()
	take("again", false)
	take("last", false) // when all before are durable
	mu.Lock()
	if got := committed[:min(len(committed), len(want))]; !slices.Equal(got, want) {
		t.Errorf("the OnCommit functions ran in the order %q, want %q", committed, want)
	}
	mu.Unlock()
	if n := db.syncs.Load() - before; n != 2 {
		t.Errorf("%d writes to the disk, want 2", n)
	}
}

// TestASubscriptionEndsWhenItsCommitsAreDurable: whoever serves the lane next finds them done.
func TestASubscriptionEndsWhenItsCommitsAreDurable(t *testing.T) {
	db := newSlowDisk(t)
	tr := open(t, Config{Store: db.DB})
	publish(t, tr, newMessage("in", "k", "1", 1), newMessage("in", "l", "2", 1))
	ctx, end := context.WithCancel(t.Context())
	in, err := tr.Subscriber("g").Subscribe(ctx, "in")
	if err != nil {
		t.Fatal(err)
	}
	release := db.hold()
	defer release()
	var done atomic.Bool
	m := <-in
	transactionOf(m).Sync()
	transactionOf(m).OnCommit(func() { done.Store(true) })
	m.Ack()
	<-db.began
	m = <-in // the lane goes on
	end()
	m.Nack()
	select {
	case _, open := <-in:
		t.Fatalf("the subscription ended (%v) before the commit is durable", !open)
	case <-time.After(10 * time.Millisecond):
	}
	release()
	for m := range in {
		m.Nack()
	}
	if !done.Load() {
		t.Error("the subscription ended before the OnCommit function ran")
	}
}

// TestBare reads messages from their transactions, with and without metadata beside that, one
// of them published with Watermill's interface.
func TestBare(t *testing.T) {
	for _, bare := range []bool{true, false} {
		tr := open(t, Config{})
		if err := tr.Start(t.Context(), flow.Wiring{Bare: bare}); err != nil {
			t.Fatal(err)
		}
		header := map[string]string{"a": "1"}
		publish(t, tr, flow.Message{ID: "1", Topic: "in", Key: "k", Type: "x", Header: header, Body: []byte("b")})
		header["a"] = "the publisher's own"
		plain := message.NewMessage("2", nil)
		plain.Metadata.Set("a", "2")
		plain.Metadata.Set(flow.HeaderKey, "k")
		if err := tr.Publisher().Publish("in", plain); err != nil {
			t.Fatal(err)
		}
		in := subscribe(t, tr, "g", "in")

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

// TestCloseMakesCommitsDurable: also where the owner of the store never closes it.
func TestCloseMakesCommitsDurable(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db, err := store.Open(store.Options{Dir: "data", FS: mem, Lanes: 1, Gather: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tr := open(t, Config{Store: db})
	if err := tr.Unsynced().Publish(t.Context(), newMessage("in", "k", "1", 1)); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := store.Open(store.Options{Dir: "data", FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got := storedEntries(t, after, "in"); len(got) != 1 {
		t.Errorf("%d messages are there after a power failure, want 1", len(got))
	}
}
