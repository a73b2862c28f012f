package config

import "strings"

// places holds the position of each key that was read, by its path. It groups the keys of a list entry,
// because a file may have a hundred thousand entries with the same keys.
type places struct {
	of      map[string]position // paths outside of lists
	entries map[string][]place  // by the path of an entry, such as subscriptions[0]
	names   map[string]string   // the names in entries, each stored once
}

// place is the position of what has a name, such as .url, within an entry of a list. The position is in 32 bits each.
type place struct {
	name         string
	line, column int32
}

func newPlaces() places {
	return places{of: map[string]position{"": {1, 1}}, entries: make(map[string][]place), names: make(map[string]string)}
}

// cutEntry splits path behind the index of an entry of a list. It returns false if path is outside of lists.
func cutEntry(path string) (entry, name string, ok bool) {
	i := strings.IndexByte(path, ']') + 1
	return path[:i], path[i:], i > 0
}

// set notes that path is at p, in place of an earlier position.
func (a *places) set(path string, p position) {
	entry, name, ok := cutEntry(path)
	if !ok {
		a.of[path] = p
		return
	}
	known, ok := a.names[name]
	if !ok {
		known = strings.Clone(name)
		a.names[known] = known
	}
	a.entries[entry] = append(a.entries[entry], place{known, int32(p.line), int32(p.column)})
}

// get returns the position of path. It returns false if path was not read.
func (a *places) get(path string) (position, bool) {
	entry, name, ok := cutEntry(path)
	if !ok {
		p, ok := a.of[path]
		return p, ok
	}
	all := a.entries[entry]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].name == name {
			return position{int(all[i].line), int(all[i].column)}, true
		}
	}
	return position{}, false
}
