package store

import (
	"fmt"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
)

// Namespace returns the namespace of that name in d's store: all topics and groups in it
// are its own, and those of others cannot be seen from it. The empty name is the default
// one, which Open returns.
func (d *DB) Namespace(name string) *DB {
	id := d.meta.ID
	if name != "" {
		id = flow.DeriveID("namespace", id, name)
	}
	return &DB{core: d.core, space: spaceOf(name), name: name, id: id}
}

// Namespaces lists the names of the namespaces in which something is stored, in order,
// without the default one.
func (d *DB) Namespaces() ([]string, error) {
	var out []string
	for next := []byte{kindSpace}; next != nil; {
		from := next
		next = nil
		err := d.scan(d.pebble, []byte{kindSpace}, from, func(k, _ []byte) (bool, error) {
			name, _, err := cutString(k)
			if err != nil {
				return false, err
			}
			out = append(out, name)
			next = after([]byte(spaceOf(name)))
			return false, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// User is what uses a namespace of an open store.
type User struct {
	// DiskFull is called when a write found the disk full. All writes wait until it, and
	// that of every other user, returns; then the write is tried once more. Nil does nothing.
	DiskFull func()
	// Broken is called, from any goroutine and maybe more than once, when a part of the store
	// turned out to be damaged, or its files cannot be read or written. Nil does nothing.
	Broken func(error)
	// Fatal is called with what happened just before the process ends because Pebble cannot
	// go on. Nil does nothing.
	Fatal func(error)
}

// sharing is who uses which namespace.
type sharing struct {
	mu    sync.Mutex
	users map[string]User // by namespace
	// broken is the first damage that was found.
	broken error
}

// Enter makes u the user of d's namespace until leave is called. A namespace has one user
// at a time, which the error says.
func (d *DB) Enter(u User) (leave func(), err error) {
	s := &d.sharing
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.users[d.name]; ok {
		return nil, d.inUse()
	}
	if s.users == nil {
		s.users = make(map[string]User)
	}
	s.users[d.name] = u
	if s.broken != nil && u.Broken != nil {
		go u.Broken(s.broken)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.users, d.name)
	}, nil
}

func (d *DB) inUse() error {
	what := "the default namespace"
	if d.name != "" {
		what = fmt.Sprintf("the namespace %q", d.name)
	}
	return fmt.Errorf("%s of the store in %s is in use already: give each of those that share a store a name of its own",
		what, where(d.dir))
}

// all lists the users.
func (s *sharing) all() []User {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]User, 0, len(s.users))
	for _, u := range s.users {
		out = append(out, u)
	}
	return out
}

// diskFull tells all users and waits for them.
func (s *sharing) diskFull() {
	var wg sync.WaitGroup
	for _, u := range s.all() {
		if u.DiskFull != nil {
			wg.Go(u.DiskFull)
		}
	}
	wg.Wait()
}

// broke tells all users, now and later, that the store is damaged.
func (s *sharing) broke(err error) {
	s.mu.Lock()
	if s.broken == nil {
		s.broken = err
	}
	s.mu.Unlock()
	for _, u := range s.all() {
		if u.Broken != nil {
			u.Broken(err)
		}
	}
}

// fatal returns what tells first, which may be nil, and all users what happened.
func (s *sharing) fatal(first func(error)) func(error) {
	return func(err error) {
		if first != nil {
			first(err)
		}
		for _, u := range s.all() {
			if u.Fatal != nil {
				u.Fatal(err)
			}
		}
	}
}

// where names dir in a sentence.
func where(dir string) string {
	if dir == "" {
		return "memory"
	}
	return dir
}
