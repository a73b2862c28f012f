package kafka

import (
	"errors"
	"iter"

	"github.com/vokter/vokter/pipeline/flow"
)

var (
	errReadOnly = errors.New("kafka: this state can only be read")
	errNotOwned = errors.New("kafka: this process does not own the lane of this state; ask the one that does")
)

// state is what a group keeps for a key, within a transaction; without one (x is nil) it
// can only be read.
type state struct {
	ten   *tenure
	x     *tx
	place place
}

var _ flow.State = (*state)(nil)

// Get reads what the transaction wrote, then what others wrote that is not in the copy of
// the lane yet, then the copy.
func (s *state) Get(name string) (value []byte, ok bool, err error) {
	if s.x != nil {
		s.x.mu.Lock()
		defer s.x.mu.Unlock()
		if s.x.over {
			return nil, false, errOver
		}
		if v, ok := s.x.layer.get(s.place, name); ok {
			return append([]byte(nil), v...), v != nil, nil
		}
	}
	return s.ten.get(s.place, name)
}

func (s *state) Set(name string, value []byte) error {
	return s.write(name, append([]byte{}, value...))
}

func (s *state) Delete(name string) error { return s.write(name, nil) }

func (s *state) write(name string, value []byte) error {
	if s.x == nil {
		return errReadOnly
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.x.over {
		return errOver
	}
	s.x.layer.set(s.place, name, value)
	return nil
}

// Scan reads all values before it yields the first, so that the loop may read on.
func (s *state) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		values, err := s.ten.scan(s.place, prefix)
		if err == nil && s.x != nil {
			s.x.mu.Lock()
			if s.x.over {
				err = errOver
			}
			s.x.layer.over(s.place, prefix, values)
			s.x.mu.Unlock()
		}
		if err != nil {
			yield("", flow.Value{Err: err})
			return
		}
		for _, name := range sorted(values) {
			if !yield(name, flow.Value{Bytes: append([]byte{}, values[name]...)}) {
				return
			}
		}
	}
}
