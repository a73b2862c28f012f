package local

import (
	"errors"
	"iter"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

var errReadOnly = errors.New("local: this state can only be read")

// state is what a group keeps for a key, within a transaction; without one (x is nil) it
// can only be read.
type state struct {
	t     *Transport
	x     *tx
	group string
	lane  int
	key   string
}

var _ flow.State = (*state)(nil)

// read calls f with the batch to read through.
func (s *state) read(f func(b *store.Batch) error) error {
	if s.x == nil {
		return f(nil)
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	// Few handlers read after they wrote, so the batch is only indexed for those that do.
	if s.x.batch != nil {
		if err := s.x.batch.Index(); err != nil {
			return err
		}
	}
	return f(s.x.batch)
}

// write calls f with the transaction's batch.
func (s *state) write(f func(b *store.Batch)) error {
	if s.x == nil {
		return errReadOnly
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	if s.x.batch == nil {
		b, err := s.t.db.NewBatch(false)
		if err != nil {
			return err
		}
		s.x.batch = b
	}
	f(s.x.batch)
	return nil
}

func (s *state) Get(name string) (value []byte, ok bool, err error) {
	err = s.read(func(b *store.Batch) error {
		value, ok, err = s.t.db.GetState(b, s.group, s.lane, s.key, name)
		return err
	})
	return value, ok, err
}

func (s *state) Set(name string, value []byte) error {
	return s.write(func(b *store.Batch) { b.SetState(s.group, s.lane, s.key, name, value) })
}

func (s *state) Delete(name string) error {
	return s.write(func(b *store.Batch) { b.DeleteState(s.group, s.lane, s.key, name) })
}

// Scan does not lock the transaction while it yields, so that the loop may read on.
func (s *state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		var batch *store.Batch
		err := s.read(func(b *store.Batch) error {
			batch = b
			if s.x != nil {
				s.x.scans++
			}
			return nil
		})
		more := true
		if err == nil {
			defer s.scanned()
			err = s.t.db.ScanState(batch, s.group, s.lane, s.key, prefix, func(name string, v []byte) bool {
				more = yield(name, flow.Value{Bytes: v})
				return more
			})
		}
		if err != nil && more {
			yield("", flow.Value{Err: err})
		}
	}
}

// scanned ends a scan.
func (s *state) scanned() {
	if s.x == nil {
		return
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.scans--
	s.x.closeStale()
}

// State is what group keeps for key, as it is committed; it cannot be written to.
func (t *Transport) State(group, key string) flow.State {
	return &state{t: t, group: group, lane: t.laneOf(key), key: key}
}

// States yields the keys for which group keeps state, in no order that means anything,
// each with its state as it is committed. Keys are found by seeking, not by reading
// their values. A store's failure ends it with an empty key and a state whose reads fail.
func (t *Transport) States(group string) iter.Seq2[string, flow.State] {
	return t.views(group, t.db.StateKeys(group))
}

// views yields keys, each with the committed state that group keeps for it.
func (t *Transport) views(group string, keys iter.Seq2[string, error]) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for key, err := range keys {
			if err != nil {
				yield("", flow.FailedState(err))
				return
			}
			if !yield(key, t.State(group, key)) {
				return
			}
		}
	}
}
