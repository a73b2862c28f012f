package local

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

var _ flow.Transport = (*Transport)(nil)

// Transport carries messages between the stages of one process, which owns all lanes. It is
// safe for concurrent use.
type Transport struct {
	cfg Config
	log *slog.Logger
	db  *store.DB
	// leaveNamespace releases the namespace of db.
	leaveNamespace func()
	lanes          int
	// volatile says that nobody can read the store after Close, so that it needs no logs and
	// positions.
	volatile bool

	// wiring is that of Start; before it, the zero Wiring.
	wiring   atomic.Pointer[flow.Wiring]
	activity atomic.Uint64
	clock    engine.Clock
	// savedClock is the time in the store, in Unix nanoseconds.
	savedClock atomic.Int64
	// room is nil where the disk is not watched.
	room *store.Room
	// chain is the one that the topics declare, or nil.
	chain *engine.Chain

	// ctx is done when Close begins.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.RWMutex
	topics map[string]*topic
	// cursors are those of all groups; none is ever removed.
	cursors []*cursor

	subs engine.Subscriptions
}

// Open opens the transport in c.Dir. Its errors say what to do.
func Open(c Config) (*Transport, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	t := &Transport{
		cfg: c, log: c.Logger, db: c.Store,
		volatile: c.Store == nil && c.Dir == "",
		topics:   map[string]*topic{}, chain: engine.ChainOf(c.Topics),
	}
	t.wiring.Store(new(flow.Wiring))
	t.clock.Wall, t.clock.WakeAll, t.clock.Log = c.Now, t.wakeAll, c.Logger
	t.subs.Open, t.subs.Assign, t.subs.Grace, t.subs.After, t.subs.Closed = t.openConsumer, t.assign, c.Grace, abandonAfter, ErrClosed
	t.room = newRoom(c)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if err := t.openStore(); err != nil {
		t.cancel()
		return nil, err
	}
	t.lanes = t.db.Lanes()
	if err := errors.Join(t.restoreClock(), t.restore()); err != nil {
		t.cancel()
		return nil, errors.Join(err, t.closeStore())
	}
	t.clock.Check()
	t.room.Start()
	return t, nil
}

// Start uses only w.Bare, w.Unhandled and w.Rejected. Everything else is in Config and was done by Open.
func (t *Transport) Start(_ context.Context, w flow.Wiring) error {
	t.wiring.Store(&w)
	return nil
}

// String returns the data directory, or says that there is none.
func (t *Transport) String() string {
	switch {
	case t.cfg.Store != nil:
		return "given store"
	case t.cfg.Dir == "":
		return "memory"
	}
	return t.cfg.Dir
}

// openStore opens the store, unless it is given, and enters its namespace.
func (t *Transport) openStore() error {
	db, user := t.cfg.Store, store.User{Broken: t.cfg.OnBroken, DiskFull: t.room.DiskFull}
	if db == nil {
		if err := t.room.Opens(); err != nil {
			return err
		}
		var err error
		db, err = store.Open(store.Options{
			Dir: t.cfg.Dir, Lanes: t.cfg.Lanes, Memory: t.cfg.Memory, Gather: Gather, Logger: t.log, OnFatal: t.cfg.OnFatal,
		})
		if err != nil {
			return err
		}
	} else {
		user.Fatal = t.cfg.OnFatal
	}
	t.db = db.Namespace(t.cfg.Namespace)
	leave, err := t.db.Enter(user)
	if err != nil {
		return err
	}
	t.leaveNamespace = leave
	return nil
}

// closeStore leaves the namespace, and closes the store unless it was given.
func (t *Transport) closeStore() error {
	defer t.leaveNamespace()
	if t.cfg.Store != nil {
		return nil
	}
	return t.db.Close()
}

// Close ends all subscriptions, unblocks publishers and posters with ErrClosed, and closes the
// store unless it is Config.Store. Handlers get Config.Grace to finish, then another second
// after their contexts are cancelled. Messages that are still in flight are redelivered after
// the next start. Close waits for a commit in progress; on a full disk that means until there
// is room.
func (t *Transport) Close() error {
	t.cancel()
	defer t.room.Stop() // only now, since commits may wait for it
	t.subs.Close()
	return errors.Join(t.storeClock(), t.closeStore())
}

// reportBroken calls Config.OnBroken if err says that the store cannot be read.
func (t *Transport) reportBroken(err error) {
	if class, _ := failure.ClassOf(err); class == failure.ClassBroken {
		t.cfg.OnBroken(err)
	}
}

func (t *Transport) closed() bool { return t.ctx.Err() != nil }

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether there is nothing to do: every group has consumed all messages of its
// topics, nothing is in flight or posted, and no wake is due. It returns false if any of that
// changed meanwhile. It does not block: a lane that is locked, for example by a slow commit, is
// not idle.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	now := t.cfg.Now()
	busy := slices.ContainsFunc(t.allCursors(), func(c *cursor) bool { return !c.consumer.inactive && !c.isIdle(now) })
	return !busy && t.activity.Load() == before
}

// Owns returns true: no other process can have the store open.
func (t *Transport) Owns(string) bool { return true }

// Owner returns "": the Transport has no other process.
func (t *Transport) Owner(string) string { return "" }

// Epoch returns 0: lanes never move.
func (t *Transport) Epoch(string) uint64 { return 0 }

// Gained returns nil: all lanes are owned from the start.
func (t *Transport) Gained() <-chan struct{} { return nil }

// Tail returns a channel without messages, because there are no other processes.
func (t *Transport) Tail(ctx context.Context, _ string) (<-chan flow.Message, error) {
	none := make(chan flow.Message)
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}

// Gauges returns the size of the store. The Router has all other gauges.
func (t *Transport) Gauges() []flow.Gauge {
	return []flow.Gauge{{Name: flow.GaugeStoreBytes, Help: "Size of the store on disk, in bytes.", Value: float64(t.db.Size())}}
}

// Shortage is the error of Ready while the disk of the data directory has too little room. It
// ends when there is room again.
type Shortage = store.Shortage

// newRoom returns the watch of the disk that c asks for.
func newRoom(c Config) *store.Room {
	dir := c.Dir
	if c.Store != nil {
		dir = c.Store.Dir()
	}
	return store.NewRoom(dir, c.MinFree, c.Free, c.Logger)
}

// Ready returns nil, or a *Shortage while publishers outside transactions wait for room on the
// disk.
func (t *Transport) Ready() error { return t.room.Err() }

// Room returns nil while there is room on the disk, and otherwise a channel that is closed when
// there is room again.
func (t *Transport) Room() <-chan struct{} { return t.room.Again() }

// BackupTo writes a copy of the store, with all its namespaces, to w; see store.DB.BackupTo.
// The Transport keeps working.
func (t *Transport) BackupTo(w io.Writer) error { return t.db.BackupTo(w) }
