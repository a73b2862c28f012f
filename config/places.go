package config

import "strings"

// positionTable holds the position of each key that was read, by its path. It groups the keys of a list entry,
// because a file may have a hundred thousand entries with the same keys.
type positionTable struct {
	topLevel map[string]position        // paths outside of lists
	entries  map[string][]entryPosition // by the path of an entry, such as subscriptions[0]
	names    map[string]string          // the names in entries, each stored once
}

// entryPosition is the position of a key within an entry of a list. The name is the rest of its path, such as
// .url. Line and column have 32 bits to save memory.
type entryPosition struct {
	name         string
	line, column int32
}

func newPositionTable() positionTable {
	return positionTable{topLevel: map[string]position{"": {1, 1}}, entries: make(map[string][]entryPosition), names: make(map[string]string)}
}

// splitEntryPath splits path behind the index of an entry of a list. It returns false if path is outside of lists.
func splitEntryPath(path string) (entry, name string, ok bool) {
	i := strings.IndexByte(path, ']') + 1
	return path[:i], path[i:], i > 0
}

// set stores that path is at p, in place of an earlier position.
func (a *positionTable) set(path string, p position) {
	entry, name, ok := splitEntryPath(path)
	if !ok {
		a.topLevel[path] = p
		return
	}
	known, ok := a.names[name]
	if !ok {
		known = strings.Clone(name)
		a.names[known] = known
	}
	a.entries[entry] = append(a.entries[entry], entryPosition{known, int32(p.line), int32(p.column)})
}

// get returns the position of path. It returns false if path was not read.
func (a *positionTable) get(path string) (position, bool) {
	entry, name, ok := splitEntryPath(path)
	if !ok {
		p, ok := a.topLevel[path]
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
