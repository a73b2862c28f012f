package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the keys, and of the values of the stages' state, that this code
// writes.
const Format = storeFormat

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
		err := d.scan(d.stringsOf(kind), nil, func(k, v []byte) (bool, error) {
			group, k, err := cutString(k)
			if err != nil {
				return false, err
			}
			lane, key, name, err := cutState(k)
			if err != nil {
				return false, err
			}
			err = f(Kept{group, lane, key, name, append(make([]byte, 0, len(v)), v...)})
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
	dir := absolute(o.Dir)
	return whole(vfs.Default, dir, func(to string) error {
		o.Dir, o.FS = to, nil
		db, err := Open(o)
		if err != nil {
			return err
		}
		err = fill(db)
		if err == nil {
			err = db.flush()
		}
		return errors.Join(err, db.Close())
	})
}

// flush makes committed writes durable.
func (d *DB) flush() error {
	if err := d.use(); err != nil {
		return err
	}
	defer d.done()
	return d.pebble.Flush()
}
