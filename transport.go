package vokter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// errNotStarted says that the Router was stopped before its transport had started.
var errNotStarted = errors.New("vokter: ended before it had started")

// startTransport connects the transport that was given.
func (r *run) startTransport(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- r.transport.Start(ctx, r.wiring()) }()
	var err error
	select {
	case err = <-started:
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			err = errNotStarted
		}
	case err = <-r.stopErr:
		err = errors.Join(err, r.cancelStart(cancel, started))
	case <-r.finish:
		err = cmp.Or(r.cancelStart(cancel, started), errNotStarted)
	case <-ctx.Done():
		err = cmp.Or(r.cancelStart(cancel, started), errNotStarted)
	}
	closing := r.closeTransport()
	if closing != nil && errors.Is(err, errNotStarted) {
		return closing
	}
	return errors.Join(err, closing)
}

// cancelStart cancels a start and waits for its end. It returns an error where that takes too long.
func (r *run) cancelStart(cancel func(), started <-chan error) error {
	cancel()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-started:
		r.cfg.Logger.Debug("the transport was starting when Run ended", "error", err)
		return nil
	case <-timer.C:
		return fmt.Errorf("the transport did not stop starting within %v of being told to", closeTimeout)
	}
}

// wiring returns what the transport needs from the Router.
func (r *run) wiring() flow.Wiring {
	return flow.Wiring{
		Topics: topology(r.extraConsumers), Bare: r.cfg.Watermill == nil && len(r.cfg.WatermillMiddleware) == 0, Dir: r.cfg.Dir, MinFree: r.cfg.MinFree, Grace: closeTimeout / 2,
		Unhandled: r.handleUnhandled, Rejected: r.noteRejected, Source: r.eventSource, Now: r.cfg.Now, Logger: r.cfg.Logger, OnBroken: r.stopWith, OnFatal: func(err error) {
			if r.cfg.OnFatal != nil {
				r.cfg.OnFatal(err)
			}
		},
	}
}

// closeTransport closes the transport. It waits only for a limited time, because a full or
// broken disk may block a commit for ever. Messages that were not committed are redelivered at
// the next start.
func (r *run) closeTransport() error {
	limit := closeTimeout
	if r.stopTimedOut {
		limit = time.Second
	}
	closed := make(chan error, 1)
	go func() { closed <- r.transport.Close() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		if r.cfg.Transport != nil {
			return fmt.Errorf("%s could not be closed within %v: see that it answers; unfinished work is repeated at the next start", r.transport, limit)
		}
		return fmt.Errorf("the store (%s) could not be closed within %v: see that its disk has room and works, then start again; unfinished work is repeated", r.transport, limit)
	}
}

// Topology returns the topics with the consumer groups of the stages that read them. A program
// that opens the embedded transport itself, for Config.Transport, passes it as
// local.Config.Topics and adds the groups that it gives to Router.Handle.
func Topology() map[string]local.Topic { return topology(nil) }

// topology is Topology with the groups of extra added.
func topology(extra []consumer) map[string]local.Topic {
	t := map[string]local.Topic{
		// These two topics and the dead letters form cycles: index sends requests to fetch and
		// reads the results. A handler that waited for room in them could wait for itself.
		// Requests are kept in memory only, because index sends them again after every start.
		flow.TopicRequests:  {Feedback: true, Ephemeral: true},
		flow.TopicDocuments: {Feedback: true, Timed: []string{flow.GroupIndex}, Head: flow.GroupIndex},
		// What index makes of a message, diff and match handle in the same transaction.
		flow.TopicSnapshots:     {Chained: flow.GroupDiff, Private: true},
		flow.TopicSubscriptions: {Chained: flow.GroupMatch},
		flow.TopicChanges:       {Chained: flow.GroupMatch, Outlet: true},
		flow.TopicCurrent:       {Table: true, Outlet: true},
		flow.TopicDead:          {Feedback: true},
		flow.TopicHealth:        {Feedback: true},
		flow.TopicSweeps:        {Feedback: true},
		// Decisions are kept in memory only, because commands wait for one for a few seconds.
		flow.TopicDecisions: {Feedback: true, Ephemeral: true},
	}
	t[flow.TopicIngest] = local.Topic{Entry: true} // a source waits while the pages it pushed are being handled
	for _, b := range append((&stages{}).consumers(), extra...) {
		topic := t[b.topic]
		topic.Groups = append(topic.Groups, b.group)
		t[b.topic] = topic
	}
	return t
}

// openTransport opens the embedded transport or starts Config.Transport. It returns errNotStarted where
// ctx is done before that.
func (r *run) openTransport(ctx context.Context) error {
	if err := r.checkGroups(); err != nil {
		if r.transport != nil { // Run closes it, however it ends
			err = errors.Join(err, r.closeTransport())
		}
		return err
	}
	if r.transport != nil {
		return r.startTransport(ctx)
	}
	c := local.Config{
		Dir: r.cfg.Dir, Memory: storeMemory(r.cfg.Memory), MinFree: r.cfg.MinFree, Topics: topology(r.extraConsumers), Grace: closeTimeout / 2,
		Now: r.cfg.Now, Asleep: r.cfg.Mode.groupsWithoutWakes(), KeepUndeclared: r.cfg.Mode != ModeAll, Logger: r.cfg.Logger, OnFatal: r.cfg.OnFatal, OnBroken: r.stopWith,
	}
	if r.cfg.Store != nil {
		c.Dir, c.Store, c.Namespace = "", r.cfg.Store.db, r.cfg.Name
	}
	t, err := local.Open(c)
	if err != nil {
		return err
	}
	r.transport = t
	return t.Start(ctx, r.wiring())
}

// ErrInUse says that another Router or Store, in this process or another, has the data
// directory open.
var ErrInUse = store.ErrInUse

// Store is an open data directory that several Routers of one process share, each under a
// Config.Name of its own.
type Store struct {
	db *store.DB
}

// StoreOption alters how OpenStore opens a store.
type StoreOption func(*store.Options)

// StoreLogger makes the store log failures of its disk to l.
func StoreLogger(l *slog.Logger) StoreOption { return func(o *store.Options) { o.Logger = l } }

// OpenStore opens the data directory dir and makes it if it does not exist. Empty: a store in
// memory, which Close deletes. It may hold an eighth of the default of Config.Memory in memory.
// Errors say what to do.
func OpenStore(dir string, opts ...StoreOption) (*Store, error) {
	o := store.Options{Dir: dir, Gather: local.Gather, Memory: storeMemory(defaultMemory(memory.Limit()))}
	for _, opt := range opts {
		opt(&o)
	}
	db, err := store.Open(o)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// Close closes the store. Routers that use it must have ended.
func (s *Store) Close() error { return s.db.Close() }

// Backup copies the store to dir, with the state of all its Routers, while they run. Dir must be
// empty or missing; it still is after an error or a crash. A Router started on the copy continues
// from there on its own: its new versions and notifications have other IDs than those of the
// original. Errors say what to do.
func (s *Store) Backup(dir string) error { return s.db.Backup(dir) }

// BackupTo writes such a copy to w, as a tar archive for UnpackBackup.
func (s *Store) BackupTo(w io.Writer) error { return s.db.BackupTo(w) }

// UnpackBackup unpacks a backup of BackupTo into dir, which must be empty or missing. A
// truncated archive is refused and leaves nothing behind. Errors say what to do.
func UnpackBackup(r io.Reader, dir string) error {
	if err := store.Unpack(r, dir); err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	return nil
}

// Backup writes a consistent copy of the Router's store to w, for UnpackBackup. The Router
// keeps running.
func (r *Router) Backup(ctx context.Context, w io.Writer) error {
	if err := r.waitReadable(ctx); err != nil {
		return err
	}
	return r.stoppedIfClosing(r.transport.BackupTo(w))
}
