package vokter

import (
	"github.com/vokter/vokter/pipeline/store"
)

// Store is an open data directory that several Routers of one process share, each under a
// Config.Name of its own.
type Store struct {
	db  *store.DB
	dir string
}

// OpenStore opens the data directory dir, which is made if it does not exist; empty: one
// in memory, which is gone at Close. Its errors say what to do.
func OpenStore(dir string) (*Store, error) {
	db, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return &Store{db, dir}, nil
}

// Close closes the store. Routers that use it must have ended.
func (s *Store) Close() error { return s.db.Close() }
