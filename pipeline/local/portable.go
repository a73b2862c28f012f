package local

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/store"
)

// importBatchBytes is about how many bytes Import writes in one batch.
const importBatchBytes = 4 << 20

// Export writes the state of all groups of the store in c.Dir to w. No process may
// use the store. Messages are not exported: if one of c.Topics waits for a group, Export fails.
// With leave it exports all the same, and returns what it left behind, one line for each group
// and topic. The caller closes w.
func Export(c Config, w *portable.Writer, leave bool) (left []string, err error) {
	if c.Dir == "" {
		return nil, errors.New("local: only a store in a directory can be exported")
	}
	db, err := store.Open(store.Options{Dir: c.Dir, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	names, err := db.Namespaces()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("%s holds the state of several Routers (%q), which share a store under names: only that of one Router can be exported", c.Dir, names)
	}
	if left, err = describeUnhandled(db, c.Topics); err != nil {
		return nil, err
	}
	if len(left) > 0 && !leave {
		return nil, portable.Unhandled(left)
	}
	return left, exportState(db, c, w)
}

func exportState(db *store.DB, c Config, w *portable.Writer) error {
	clock, _, err := db.LastSeen()
	if err != nil {
		return err
	}
	w.Describe(portable.Manifest{
		StateFormat: store.Format, Transport: "local", Lineage: db.ID(), Time: c.withDefaults().Now().UTC(), Clock: clock,
	})
	return db.EachState(func(s store.Kept) error {
		return w.Add(portable.Record{Group: s.Group, Key: s.Key, Name: s.Name, Value: s.Value})
	})
}

// describeUnhandled describes the messages of topics in db that their groups have not handled, one line
// for each group and topic.
func describeUnhandled(db *store.DB, topics map[string]Topic) ([]string, error) {
	at := make(map[store.Position]uint64) // by the rest of the position
	positions, err := db.Positions()
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		at[store.Position{Group: p.Group, Topic: p.Topic, Lane: p.Lane}] = p.Offset
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		if topics[name].Ephemeral {
			continue // their senders send them again
		}
		for _, group := range topics[name].Groups {
			if !topics[name].ReadBy(group) {
				continue
			}
			var n uint64
			for lane := range db.Lanes() {
				begin, end, err := db.Bounds(name, lane)
				if err != nil {
					return nil, err
				}
				if from := max(begin, at[store.Position{Group: group, Topic: name, Lane: lane}]); from < end {
					n += end - from
				}
			}
			if n > 0 {
				lines = append(lines, fmt.Sprintf("%d of %s for %s", n, name, group))
			}
		}
	}
	return lines, nil
}

// Import creates a store in c.Dir with the content of e. c.Dir must be empty or missing, and
// still is after an error or a crash. The store has a new ID, so that positions differ from
// earlier ones. Errors say what to do.
func Import(c Config, e *portable.Export) error {
	if c.Dir == "" {
		return errors.New("local: state can only be imported into a directory")
	}
	err := store.Fill(store.Options{Dir: c.Dir, Lanes: c.Lanes, Logger: c.Logger}, func(db *store.DB) error { return importState(db, e) })
	if err != nil {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	return nil
}

// importState writes the content of e to db.
func importState(db *store.DB, e *portable.Export) error {
	next, stop := iter.Pull2(e.Records())
	defer stop()
	for more := true; more; {
		err := db.Write(false, func(b *store.Batch) error {
			for size := 0; size < importBatchBytes; {
				r, err, ok := next()
				if more = ok; err != nil || !ok {
					return err
				}
				b.SetState(r.Group, laneOf(r.Key, db.Lanes()), r.Key, r.Name, r.Value)
				size += len(r.Key) + len(r.Name) + len(r.Value)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if e.Clock.IsZero() {
		return nil
	}
	return db.Write(false, func(b *store.Batch) error { b.SetLastSeen(e.Clock); return nil })
}
