package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// Migration brings the state of one group from a format of the store to the next.
type Migration struct {
	// Group is the group.
	Group string
	// Convert returns the value in the next format, or nil to remove it. After an
	// interruption Convert also gets values that it has converted already, and must return
	// those unchanged.
	Convert func(key, name string, value []byte) ([]byte, error)
}

// migrateBatch is about how many bytes are converted between two commits.
const migrateBatch = 1 << 20

// progressEvery is the interval at which a migration logs its progress.
const progressEvery = 5 * time.Second

// migrator brings a store from one format to the next.
type migrator struct {
	d        *DB
	log      *slog.Logger
	from     int
	seen     int
	changed  int
	progress time.Time
}

// migrate converts the store from format to the current one, one format at a time. A process
// that is killed meanwhile leaves a store of the old format in which some values have the new
// one already. The next Open continues from there.
func (d *DB) migrate(o Options, format int) error {
	for ; format < storeFormat; format++ {
		steps, ok := o.Migrations[format]
		if !ok {
			return fmt.Errorf("it is of format %d, which this program cannot bring to format %d", format, format+1)
		}
		began := time.Now()
		m := &migrator{d: d, log: o.logger(), from: format, progress: began}
		m.log.Info("bringing the store to a new format; older versions of Vokter cannot use it any more",
			"dir", d.dir, "from", format, "to", format+1)
		for _, s := range steps {
			if err := m.run(s); err != nil {
				return err
			}
		}
		if err := d.writeMeta(format + 1); err != nil {
			return err
		}
		m.log.Info("the store has the new format", "dir", d.dir, "format", format+1,
			"values", m.seen, "changed", m.changed, "took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// run converts the group of s in all namespaces.
func (m *migrator) run(s Migration) error {
	names, err := m.d.Namespaces()
	if err != nil {
		return err
	}
	for _, n := range append([]string{""}, names...) {
		for _, kind := range stateKinds {
			if err := m.group(m.d.Namespace(n), kind, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// group converts the states of a kind of the group of s in d's namespace.
func (m *migrator) group(d *DB, kind byte, s Migration) error {
	prefix := d.stringsOf(kind, s.Group)
	for from := prefix; from != nil; {
		b, err := d.NewBatch()
		if err != nil {
			return err
		}
		if from, err = m.batch(d, b, s, prefix, from); err == nil {
			err = b.Commit(false) // writeMeta later makes this durable as well
		}
		if err != nil {
			b.Close()
			return err
		}
		if now := time.Now(); now.Sub(m.progress) >= progressEvery {
			m.progress = now
			m.log.Info("bringing the store to a new format", "group", s.Group, "values", m.seen, "changed", m.changed)
		}
	}
	return nil
}

// batch converts values into b, beginning at the key from. next is the key at which to
// continue, or nil at the end.
func (m *migrator) batch(d *DB, b *Batch, s Migration, prefix, from []byte) (next []byte, err error) {
	room := migrateBatch
	err = d.scan(prefix, from, func(k, v []byte) (bool, error) {
		if room <= 0 {
			next = append(append([]byte(nil), prefix...), k...)
			return false, nil
		}
		room -= len(k) + len(v)
		m.seen++
		_, key, name, err := cutState(k)
		if err != nil {
			return false, err
		}
		value, err := s.Convert(key, name, append([]byte{}, v...))
		if err != nil {
			return false, fmt.Errorf("bringing it from format %d to %d: state %q of key %q in group %s: %w",
				m.from, m.from+1, name, key, s.Group, err)
		}
		full := append(append([]byte(nil), prefix...), k...)
		switch {
		case value == nil:
			b.delete(full)
		case !bytes.Equal(value, v):
			b.set(full, value)
		default:
			return true, nil
		}
		m.changed++
		return true, nil
	})
	return next, err
}

// writeMeta durably stores the metadata of the store, and its format.
func (d *DB) writeMeta(format int) error {
	b, err := json.Marshal(d.meta)
	if err != nil {
		return err
	}
	return d.pebble.Set([]byte{kindMeta}, append([]byte{byte(format)}, b...), d.writeOptions(true))
}
