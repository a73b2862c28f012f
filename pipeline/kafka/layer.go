package kafka

import (
	"maps"
	"slices"
	"strings"
)

// place names the state of a group for a key.
type place struct{ group, key string }

// layer is what was written to the states of a lane and is not in its copy yet. A nil value
// means that the name was deleted. It is not safe for concurrent use.
type layer struct {
	states map[place]map[string][]byte
	bytes  int // about how many are held
}

// set stores value under name of p; nil deletes.
func (l *layer) set(p place, name string, value []byte) {
	if l.states == nil {
		l.states = make(map[place]map[string][]byte)
	}
	names := l.states[p]
	if names == nil {
		names = make(map[string][]byte)
		l.states[p] = names
	}
	l.bytes += len(value) - len(names[name])
	names[name] = value
}

// get returns what was written under name of p; ok is false where nothing was.
func (l *layer) get(p place, name string) (value []byte, ok bool) {
	value, ok = l.states[p][name]
	return value, ok
}

// merge puts what other holds over what l holds.
func (l *layer) merge(other *layer) {
	for p, names := range other.states {
		for name, value := range names {
			l.set(p, name, value)
		}
	}
}

// over puts the names of p that begin with prefix over those of values.
func (l *layer) over(p place, prefix string, values map[string][]byte) {
	for name, value := range l.states[p] {
		if strings.HasPrefix(name, prefix) {
			values[name] = value
		}
	}
}

// sorted returns the names of values that are not deleted, in order.
func sorted(values map[string][]byte) []string {
	maps.DeleteFunc(values, func(_ string, v []byte) bool { return v == nil })
	return slices.Sorted(maps.Keys(values))
}
