package txtest

import (
	"bytes"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
)

// Memory is committed state: values by place and name. It has no place without values.
type Memory map[engine.Place]map[string][]byte

var _ engine.Reader = Memory{}

// Value returns a copy of the value of name at p.
func (m Memory) Value(p engine.Place, name string) (value []byte, ok bool, err error) {
	v, ok := m[p][name]
	return bytes.Clone(v), ok, nil
}

// Values yields the names at p that begin with prefix, in order.
func (m Memory) Values(p engine.Place, prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		for _, name := range slices.Sorted(maps.Keys(m[p])) {
			v, ok := m[p][name] // the loop may delete it
			if ok && strings.HasPrefix(name, prefix) && !yield(name, flow.Value{Bytes: bytes.Clone(v)}) {
				return
			}
		}
	}
}

// Keys yields the keys behind after for which group has values, in order.
func (m Memory) Keys(group, after string) iter.Seq2[string, error] {
	var keys []string
	for p := range m {
		if p.Group == group && (after == "" || p.Key > after) {
			keys = append(keys, p.Key)
		}
	}
	slices.Sort(keys)
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// Set stores a copy of value under name at p; a nil value deletes.
func (m Memory) Set(p engine.Place, name string, value []byte) {
	if value == nil {
		if delete(m[p], name); len(m[p]) == 0 {
			delete(m, p)
		}
		return
	}
	if m[p] == nil {
		m[p] = make(map[string][]byte)
	}
	m[p][name] = bytes.Clone(value)
}

// Clone returns a copy that can be written to.
func (m Memory) Clone() Memory {
	c := make(Memory, len(m))
	for p, values := range m {
		c[p] = maps.Clone(values)
	}
	return c
}
