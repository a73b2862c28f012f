package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/vokter/vokter/pipeline/flow"
)

// get returns a copy of the value of key.
func (d *DB) get(key []byte) (value []byte, ok bool, err error) {
	if err := d.acquire(); err != nil {
		return nil, false, err
	}
	defer d.release()
	if v, ok, known := d.buffer.get(key); known {
		return v, ok, nil
	}
	v, closer, err := d.pebble.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, d.readError(err)
	}
	return append(make([]byte, 0, len(v)), v...), true, closer.Close()
}

// getUint64 returns the value of key, which is a number.
func (d *DB) getUint64(key []byte) (n uint64, ok bool, err error) {
	v, ok, err := d.get(key)
	switch {
	case err != nil || !ok:
		return 0, false, err
	case len(v) != 8:
		return 0, false, d.readError(errKey)
	}
	return binary.BigEndian.Uint64(v), true, nil
}

// iterate calls f with an iterator over the keys that begin with prefix, from the key from on. It returns
// the error of f, or else that of the iterator. Errors of the iterator, of a malformed key and of a malformed
// record are readErrors. The iterator is closed even if f panics: an open one keeps files that were deleted,
// and the store could not be closed.
func (d *DB) iterate(prefix, from []byte, f func(*pebble.Iterator) error) (err error) {
	if err := d.acquire(); err != nil {
		return err
	}
	defer d.release()
	if err := d.flushBuffer(prefix); err != nil {
		return d.readError(err)
	}
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return d.readError(err)
	}
	defer func() { err = cmp.Or(err, d.readError(it.Close())) }()
	err = f(it)
	if errors.Is(err, errKey) || errors.Is(err, errRecord) {
		return d.readError(err)
	}
	return err
}

// scan calls f with the entries whose keys begin with prefix. k is the rest of the key. k
// and v are valid until f returns.
func (d *DB) scan(prefix, from []byte, f func(k, v []byte) (more bool, err error)) error {
	if from == nil {
		from = prefix
	}
	return d.iterate(prefix, from, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.ValueAndErr()
			if err != nil {
				return d.readError(err)
			}
			more, err := f(it.Key()[len(prefix):], v)
			if err != nil || !more {
				return err
			}
		}
		return nil
	})
}

// Entry is a record and its offset.
type Entry struct {
	Offset uint64
	Record Record
}

// ReadLog returns the records of a topic's lane with from <= offset < to: as many as fit into
// bytes, but at least one if there is one.
func (d *DB) ReadLog(topic string, lane int, from, to uint64, bytes int) ([]Entry, error) {
	var out []Entry
	prefix := d.laneKey(kindLog, lane, topic)
	err := d.scan(prefix, d.logKey(topic, lane, from), func(k, v []byte) (bool, error) {
		if len(k) != 8 {
			return false, errKey
		}
		offset := binary.BigEndian.Uint64(k)
		if bytes -= len(v); offset >= to || (bytes < 0 && len(out) > 0) {
			return false, nil
		}
		r, err := parseRecord(v)
		out = append(out, Entry{offset, r})
		return true, err
	})
	return out, err
}

// Bounds returns the offsets of the oldest record kept in a topic's lane and of the next one to
// append. Positions of groups may be beyond end.
func (d *DB) Bounds(topic string, lane int) (begin, end uint64, err error) {
	begin, _, err = d.getUint64(d.logStartKey(topic, lane))
	if err != nil {
		return 0, 0, err
	}
	end = begin
	prefix := d.laneKey(kindLog, lane, topic)
	err = d.iterate(prefix, d.logKey(topic, lane, begin), func(it *pebble.Iterator) error {
		if it.Last() && len(it.Key()) == len(prefix)+8 {
			end = binary.BigEndian.Uint64(it.Key()[len(prefix):]) + 1
		}
		return nil
	})
	return begin, end, err
}

// Topics lists the topics that have a log, in order of their names.
func (d *DB) Topics() ([]string, error) {
	logs, err := d.distinctStrings(d.keyPrefix(kindLog))
	if err != nil {
		return nil, err
	}
	trimmed, err := d.distinctStrings(d.keyPrefix(kindLogStart))
	if err != nil {
		return nil, err
	}
	all := append(logs, trimmed...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// distinctStrings returns the strings that follow prefix in keys, in order and each once.
func (d *DB) distinctStrings(prefix []byte) ([]string, error) {
	all, _, err := d.readKeyBatch(prefix, "", prefix, math.MaxInt)
	return all, err
}

// Position is the position of a group in a topic's lane.
type Position struct {
	Group, Topic string
	Lane         int
	Offset       uint64
}

// Positions returns the positions of all groups.
func (d *DB) Positions() ([]Position, error) {
	var out []Position
	err := d.scan(d.keyPrefix(kindPosition), nil, func(k, v []byte) (bool, error) {
		group, rest, err := cutKeyString(k)
		if err != nil {
			return false, err
		}
		topic, rest, err := cutKeyString(rest)
		if err != nil || len(rest) != 2 || len(v) != 8 {
			return false, errors.Join(err, errKey)
		}
		out = append(out, Position{group, topic, int(binary.BigEndian.Uint16(rest)), binary.BigEndian.Uint64(v)})
		return true, nil
	})
	return out, err
}

// LastSeen returns the time that SetLastSeen stored last. ok is false if there is none.
func (d *DB) LastSeen() (at time.Time, ok bool, err error) {
	n, ok, err := d.getUint64(d.keyPrefix(kindLastSeen))
	if err != nil || !ok {
		return time.Time{}, false, err
	}
	return time.Unix(0, int64(n)).UTC(), true, nil
}

// GetState returns a copy of the value of name. ok is false if there is none.
func (d *DB) GetState(group string, lane int, key, name string) (value []byte, ok bool, err error) {
	return d.get(d.stateKey(group, lane, key, name))
}

// ScanState yields the names of key that begin with prefix, in order, and a copy of each value. If the
// store fails, the last pair has an Err.
func (d *DB) ScanState(group string, lane int, key, prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		more := true
		for _, kind := range stateKinds {
			if !more || prefix != "" && kind != stateKind(prefix) {
				continue
			}
			p := append(d.statePrefix(kind, group, lane, key), prefix...)
			err := d.scan(p, nil, func(k, v []byte) (bool, error) {
				more = yield(prefix+string(k), flow.Value{Bytes: append(make([]byte, 0, len(v)), v...)})
				return more, nil
			})
			if err != nil && more {
				yield("", flow.Value{Err: err})
				return
			}
		}
	}
}

// Hot yields the values of name, which begins with flow.Hot, that group keeps in a lane, ordered by key. A
// value is valid until the loop goes on. If the store fails, the last pair has an Err.
func (d *DB) Hot(group string, lane int, name string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		more := true
		err := d.scan(d.laneKey(kindHot, lane, group), nil, func(k, v []byte) (bool, error) {
			key, rest, err := cutKeyString(k)
			if err == nil && string(rest) == name {
				more = yield(key, flow.Value{Bytes: v})
			}
			return more, err
		})
		if err != nil && more {
			yield("", flow.Value{Err: err})
		}
	}
}

// HotGroups lists the groups that keep values whose names begin with flow.Hot, in order.
func (d *DB) HotGroups() ([]string, error) { return d.distinctStrings(d.keyPrefix(kindHot)) }

// StateKeys yields the keys behind after for which group keeps a value with this name, or any value if
// name is empty, in order; an empty after means all. It does not read the values. If the store fails, it
// ends with an error.
func (d *DB) StateKeys(group, name, after string) iter.Seq2[string, error] {
	lanes := make([]iter.Seq2[string, error], d.Lanes())
	for lane := range lanes {
		lanes[lane] = d.LaneStateKeys(group, lane, name, after)
	}
	return MergeKeys(lanes...)
}

// LaneStateKeys is StateKeys of one lane. It holds no iterator while it yields.
func (d *DB) LaneStateKeys(group string, lane int, name, after string) iter.Seq2[string, error] {
	if name != "" {
		return d.scanKeys(d.laneKey(stateKind(name), lane, group), name, after)
	}
	var lists [len(stateKinds)]iter.Seq2[string, error]
	for i, kind := range stateKinds {
		lists[i] = d.scanKeys(d.laneKey(kind, lane, group), "", after)
	}
	return MergeKeys(lists[:]...)
}

// scanKeys yields the keys of the states with prefix, those of one kind in a lane.
func (d *DB) scanKeys(prefix []byte, name, behind string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		from := prefix
		if behind != "" {
			from = prefixEnd(appendKeyString(bytes.Clone(prefix), behind))
		}
		for n := minKeyBatch; from != nil; n = min(2*n, maxKeyBatch) {
			var keys []string
			var err error
			if keys, from, err = d.readKeyBatch(prefix, name, from, n); err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// scanKeys reads at first minKeyBatch keys before it yields them, then more each time, up to maxKeyBatch.
const (
	minKeyBatch = 16
	maxKeyBatch = 256
)

// readKeyBatch returns at most n keys of the states with prefix, beginning at from, and where they go on:
// nil after the last. It seeks from one key to the next, which may have many values behind it. The value
// with a name is mostly the only one of its kind, so it steps over those.
func (d *DB) readKeyBatch(prefix []byte, name string, from []byte, n int) (keys []string, next []byte, err error) {
	err = d.iterate(prefix, from, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; {
			if len(keys) == n {
				return nil
			}
			key, rest, err := cutKeyString(it.Key()[len(prefix):])
			if err != nil {
				return err
			}
			if name != "" && string(rest) != name {
				ok = it.Next()
				continue
			}
			keys = append(keys, key)
			next = prefixEnd(appendKeyString(bytes.Clone(prefix), key))
			if name != "" {
				ok = it.Next()
			} else {
				ok = it.SeekGE(next)
			}
		}
		next = nil
		return nil
	})
	return keys, next, err
}

// MergeKeys yields the keys of all lists, which are in order, in order and each once. It ends with
// the first error.
func MergeKeys(lists ...iter.Seq2[string, error]) iter.Seq2[string, error] {
	type head struct {
		next      func() (string, error, bool)
		key       string
		more, old bool // there is a key; it was yielded
	}
	return func(yield func(string, error) bool) {
		heads := make([]head, len(lists))
		for i, l := range lists {
			next, stop := iter.Pull2(l)
			defer stop()
			heads[i] = head{next: next, old: true}
		}
		for {
			var least *head
			for i := range heads {
				h := &heads[i]
				if h.old {
					var err error
					if h.key, err, h.more = h.next(); err != nil {
						yield("", err)
						return
					}
				}
				if h.more && (least == nil || h.key < least.key) {
					least = h
				}
			}
			if least == nil {
				return
			}
			key := least.key
			for i := range heads {
				heads[i].old = heads[i].more && heads[i].key == key
			}
			if !yield(key, nil) {
				return
			}
		}
	}
}
