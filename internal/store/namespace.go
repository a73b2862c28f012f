package store

import (
	"fmt"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
)

// Namespace returns the namespace called name of d's store. Topics and groups of different
// namespaces are separate. The empty name means the default namespace, which Open returns.
func (d *DB) Namespace(name string) *DB {
	n := &DB{core: d.core, namespace: name, id: d.meta.ID}
	if name != "" {
		n.namespacePrefix = namespacePrefix(appendKeyString([]byte{kindNamespace}, name))
		n.id = flow.DeriveID("namespace", n.id, name)
	}
	return n
}

// User has the callbacks of the user of a namespace.
type User struct {
	// DiskFull is called when the disk is full for a write. All writes wait until it returns,
	// as well as that of every other user. Then the write is retried once. It may be nil.
	DiskFull func()
	// Broken is called when a part of the store is damaged, or its files cannot be read or
	// written. It may be called from any goroutine and more than once. It may be nil.
	Broken func(error)
	// Fatal is called with the error just before the process ends because Pebble cannot
	// continue. It may be nil.
	Fatal func(error)
}

// userRegistry holds the users of the namespaces.
type userRegistry struct {
	mu          sync.Mutex
	byNamespace map[string]User // by namespace
	// broken is the first damage that was found.
	broken error
}

// Enter makes u the user of d's namespace until leave is called. It fails if the namespace has
// a user.
func (d *DB) Enter(u User) (leave func(), err error) {
	s := &d.users
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byNamespace[d.namespace]; ok {
		return nil, d.inUseError()
	}
	if s.byNamespace == nil {
		s.byNamespace = make(map[string]User)
	}
	s.byNamespace[d.namespace] = u
	if s.broken != nil && u.Broken != nil {
		go u.Broken(s.broken)
	}
	return sync.OnceFunc(func() { // a later call would end what another user began
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.byNamespace, d.namespace)
	}), nil
}

func (d *DB) inUseError() error {
	what := "the default namespace"
	if d.namespace != "" {
		what = fmt.Sprintf("the namespace %q", d.namespace)
	}
	return fmt.Errorf("%s of the store in %s is in use already: give each of those that share a store a name of its own",
		what, describeDir(d.dir))
}

// list lists the users.
func (s *userRegistry) list() []User {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]User, 0, len(s.byNamespace))
	for _, u := range s.byNamespace {
		out = append(out, u)
	}
	return out
}

// notifyDiskFull calls DiskFull of all users and waits for them.
func (s *userRegistry) notifyDiskFull() {
	var wg sync.WaitGroup
	for _, u := range s.list() {
		if u.DiskFull != nil {
			wg.Go(u.DiskFull)
		}
	}
	wg.Wait()
}

// reportBroken calls Broken of all users. Later users are called when they enter.
func (s *userRegistry) reportBroken(err error) {
	s.mu.Lock()
	if s.broken == nil {
		s.broken = err
	}
	s.mu.Unlock()
	for _, u := range s.list() {
		if u.Broken != nil {
			u.Broken(err)
		}
	}
}

// fatalHandler returns a function that calls first, which may be nil, and then Fatal of all users.
func (s *userRegistry) fatalHandler(first func(error)) func(error) {
	return func(err error) {
		if first != nil {
			first(err)
		}
		for _, u := range s.list() {
			if u.Fatal != nil {
				u.Fatal(err)
			}
		}
	}
}

// describeDir describes dir in a sentence.
func describeDir(dir string) string {
	if dir == "" {
		return "memory"
	}
	return dir
}
