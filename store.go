package vokter

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/store"
)

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
