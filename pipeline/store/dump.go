package store

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kept is a value of a group's state.
type Kept struct {
	Group     string
	Lane      int
	Key, Name string
	Value     []byte
}

// EachState calls f with the states of all groups until f returns an error, which it then returns.
// Those with hot names come first, then those with small ones. Each kind comes by group, lane, key and name.
func (d *DB) EachState(f func(Kept) error) error {
	for _, kind := range stateKinds {
		err := d.scan(d.keyPrefix(kind), nil, func(k, v []byte) (bool, error) {
			group, k, err := cutKeyString(k)
			if err != nil {
				return false, err
			}
			if len(k) < 2 {
				return false, errKey
			}
			key, name, err := cutKeyString(k[2:])
			if err != nil {
				return false, err
			}
			err = f(Kept{group, int(binary.BigEndian.Uint16(k)), key, string(name), append(make([]byte, 0, len(v)), v...)})
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Fill creates a store in o.Dir with the content that fill writes. o.Dir must be empty or
// missing, and still is after an error or a crash. Errors say what to do.
func Fill(o Options, fill func(*DB) error) error {
	dir := absolutePath(o.Dir)
	return createAtomically(vfs.Default, dir, func(to string) error {
		o.Dir, o.FS = to, nil
		db, err := Open(o)
		if err != nil {
			return err
		}
		return errors.Join(fill(db), db.Close()) // Close makes all durable
	})
}
