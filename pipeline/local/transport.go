package local

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

var _ flow.Transport = (*Transport)(nil)

// Transport carries messages between the stages of one process, which owns all lanes. It is
// safe for concurrent use.
type Transport struct {
	cfg Config
	log *slog.Logger
	db  *store.DB
	// leave gives the namespace of db back.
	leave func()
	lanes int
	// volatile says that nobody can read the store after Close, so that no logs and
	// positions need to be in it.
	volatile bool

	// bare says that Watermill's messages need no metadata.
	bare     atomic.Bool
	activity atomic.Uint64
	alarm    alarm
	clock    clock
	// room is nil where the disk is not watched.
	room *store.Room

	// ctx is done when Close begins.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.RWMutex
	topics map[string]*topic

	subsMu sync.Mutex
	subs   map[*subscription]struct{}
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
		topics:   map[string]*topic{}, subs: map[*subscription]struct{}{},
	}
	t.alarm.at.Store(never)
	t.room = newRoom(c)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if err := t.openStore(); err != nil {
		t.cancel()
		return nil, err
	}
	t.lanes = t.db.Lanes()
	if err := errors.Join(t.restoreClock(), t.restore()); err != nil {
		t.cancel()
		t.stopAlarm()
		return nil, errors.Join(err, t.closeStore())
	}
	t.checkClock()
	t.room.Start()
	return t, nil
}

// Start takes from w whether Watermill's messages need metadata. All else is in Config, and was
// done by Open.
func (t *Transport) Start(_ context.Context, w flow.Wiring) error {
	t.bare.Store(w.Bare)
	return nil
}

// String names the data directory, or says that there is none.
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
	db, user := t.cfg.Store, store.User{Broken: t.cfg.OnBroken}
	if db == nil {
		if err := t.room.Opens(); err != nil {
			return err
		}
		var err error
		db, err = store.Open(store.Options{
			Dir: t.cfg.Dir, Lanes: t.cfg.Lanes, Logger: t.log, OnFatal: t.cfg.OnFatal, Migrations: t.cfg.Migrations,
		})
		if err != nil {
			return err
		}
	} else {
		user.Fatal = t.cfg.OnFatal
	}
	if t.room != nil {
		user.DiskFull = t.room.DiskFull
	}
	t.db = db.Namespace(t.cfg.Namespace)
	leave, err := t.db.Enter(user)
	if err != nil {
		return err
	}
	t.leave = leave
	return nil
}

// closeStore leaves the namespace, and closes the store unless it was given.
func (t *Transport) closeStore() error {
	defer t.leave()
	if t.cfg.Store != nil {
		return nil
	}
	return t.db.Close()
}

// Close ends all subscriptions, unblocks publishers and posters with ErrClosed, and
// closes the store unless it was given. Handlers get Config.Grace to finish, then a second after their
// contexts are cancelled; messages that are still in flight come again next time. A
// commit under way is waited for, on a full disk until it has room.
func (t *Transport) Close() error {
	t.cancel()
	defer t.room.Stop() // only now, since commits may wait for it
	t.subsMu.Lock()
	var ends []func()
	for s := range t.subs {
		ends = append(ends, s.close)
	}
	t.subsMu.Unlock()
	mill.EndAll(ends)
	t.stopAlarm()
	return errors.Join(t.keepClock(), t.closeStore())
}

// broken tells of err if it says that the store cannot be read.
func (t *Transport) broken(err error) {
	if class, _ := failure.ClassOf(err); class == failure.ClassBroken {
		t.cfg.OnBroken(err)
	}
}

func (t *Transport) closed() bool { return t.ctx.Err() != nil }

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether there is nothing to do: every group has consumed all messages of
// its topics, nothing is in flight or posted, and no wake is due. It is false where that
// changed while it looked. It waits for nobody: what is locked, by a commit that the disk
// holds up for example, is not idle.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	now := t.cfg.Now().UnixNano()
	for _, tp := range t.allTopics() {
		consumers, ok := tp.tryConsumers()
		if !ok {
			return false
		}
		for _, c := range consumers {
			if c.idle {
				continue
			}
			for _, cur := range c.cursors {
				if !cur.idle(now) {
					return false
				}
			}
		}
	}
	return t.activity.Load() == before
}

// Owns reports that this process handles the messages of every key: no other can have the store.
func (t *Transport) Owns(string) bool { return true }

// Epoch is 0: lanes never move.
func (t *Transport) Epoch(string) uint64 { return 0 }

// Gained is nil: all lanes are owned from the start.
func (t *Transport) Gained() <-chan struct{} { return nil }

// Tail yields nothing until ctx is done: there are no other processes.
func (t *Transport) Tail(ctx context.Context, _ string) (<-chan flow.Message, error) {
	none := make(chan flow.Message)
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}

// Gauges is nil: the Router counts all there is to count.
func (t *Transport) Gauges() []flow.Gauge { return nil }

// Shortage says that intake stopped because the disk of the data directory has too little
// room. It ends by itself.
type Shortage = store.Shortage

// newRoom returns what watches the disk as c wants it.
func newRoom(c Config) *store.Room {
	dir := c.Dir
	if c.Store != nil {
		dir = c.Store.Dir()
	}
	return store.NewRoom(dir, c.MinFree, c.Free, c.Logger)
}

// Ready returns nil, or a *Shortage while nothing is taken in for want of room on the
// disk: publishers outside a transaction wait.
func (t *Transport) Ready() error { return t.room.Err() }

// Room returns nil while there is room on the disk, otherwise a channel that is closed
// when there is again.
func (t *Transport) Room() <-chan struct{} { return t.room.Again() }

// BackupTo writes a copy of the store, with all its namespaces, to w; see
// store.DB.BackupTo. Nothing stops meanwhile.
func (t *Transport) BackupTo(w io.Writer) error { return t.db.BackupTo(w) }
