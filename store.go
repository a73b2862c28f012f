package vokter

import (
	"io"
	"log/slog"

	"github.com/vokter/vokter/pipeline/store"
)

// Migrations returns how a store of an older format becomes one of the current format, by the
// older format. A program that opens a store itself, or imports state, passes them on. There are
// none yet: store.Format is still 1.
func Migrations() map[int][]store.Migration { return nil }

// ErrInUse says that Config.Dir, or the directory of OpenStore, is open already: in another
// process, or in this one.
var ErrInUse = store.ErrInUse

// Store is an open data directory that several Routers of one process share, each under a
// Config.Name of its own.
type Store struct {
	db *store.DB
}

// StoreOption alters how OpenStore opens a store.
type StoreOption func(*store.Options)

// StoreLogger makes l get what the store itself has to tell: that it is brought to a new
// format, and troubles with its disk.
func StoreLogger(l *slog.Logger) StoreOption { return func(o *store.Options) { o.Logger = l } }

// OpenStore opens the data directory dir, which is made if it does not exist; empty: one
// in memory, which is gone at Close. Its errors say what to do.
func OpenStore(dir string, opts ...StoreOption) (*Store, error) {
	o := store.Options{Dir: dir, Migrations: Migrations()}
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

// Backup makes dir a copy of the store, with what all its Routers keep, while they go on.
// Dir must be empty or missing; after an error, or a kill at any moment, it still is. A
// Router that is started on the copy goes on where the original stood, as one of its own:
// what it finds has other IDs than what the original goes on to find. Errors say what to do.
func (s *Store) Backup(dir string) error { return s.db.Backup(dir) }

// BackupTo writes such a copy to w, as a tar archive for UnpackBackup.
func (s *Store) BackupTo(w io.Writer) error { return s.db.BackupTo(w) }

// UnpackBackup makes dir, which must be empty or missing, the copy that r holds. An
// archive that was cut off anywhere is refused and leaves nothing. Errors say what to do.
func UnpackBackup(r io.Reader, dir string) error { return store.Unpack(r, dir) }
