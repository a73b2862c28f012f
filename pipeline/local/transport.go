package local

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vokter/vokter/pipeline/store"
)

// Transport carries messages between the stages of one process. It is safe for
// concurrent use.
type Transport struct {
	cfg   Config
	log   *slog.Logger
	db    *store.DB
	lanes int
	// volatile says that nobody can read the store after Close, so that no logs and
	// positions need to be in it.
	volatile bool

	activity atomic.Uint64
	alarm    alarm
	// room is nil where the disk is not watched.
	room *room

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
	t.alarm.at = never
	t.room = newRoom(c)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if t.db == nil {
		if err := t.room.opens(); err != nil {
			t.cancel()
			return nil, err
		}
		db, err := store.Open(store.Options{
			Dir: c.Dir, Lanes: c.Lanes, Logger: c.Logger, OnFatal: c.OnFatal, OnDiskFull: t.onDiskFull(),
		})
		if err != nil {
			t.cancel()
			return nil, err
		}
		t.db = db
	}
	t.lanes = t.db.Lanes()
	if err := t.restore(); err != nil {
		t.cancel()
		t.stopAlarm()
		if c.Store == nil {
			t.db.Close()
		}
		return nil, err
	}
	t.room.start()
	return t, nil
}

// onDiskFull is what the store calls when its disk is full; nil where nothing is watched.
func (t *Transport) onDiskFull() func() {
	if t.room == nil {
		return nil
	}
	return t.room.diskFull
}

// StoreID is the random name of the store, with which every position begins.
func (t *Transport) StoreID() string { return t.db.ID() }

// Close ends all subscriptions, unblocks publishers and posters with ErrClosed, and
// closes the store. Handlers get Config.Grace to finish, then a second after their
// contexts are cancelled; messages that are still in flight come again next time. A
// commit under way is waited for, on a full disk until it has room.
func (t *Transport) Close() error {
	t.cancel()
	defer t.room.stop() // only now, since commits may wait for it
	t.subsMu.Lock()
	subs := slices.Collect(maps.Keys(t.subs))
	t.subsMu.Unlock()
	closeAll(subs)
	t.stopAlarm()
	if t.cfg.Store != nil {
		return nil
	}
	return t.db.Close()
}

func (t *Transport) closed() bool { return t.ctx.Err() != nil }
