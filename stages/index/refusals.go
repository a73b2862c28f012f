package index

import "sync"

// refusals are the pages of which this process refused an ApplyCommand. It is safe for
// concurrent use.
type refusals struct {
	mu    sync.Mutex
	pages map[string]bool
}

func (r *refusals) add(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil {
		r.pages = make(map[string]bool)
	}
	r.pages[page] = true
}

// TakeRefused returns the pages of which an ApplyCommand was refused since the last call. The
// caller sends their commands again: what stood in their way may be gone.
func (s *Stage) TakeRefused() map[string]bool {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	pages := s.refusals.pages
	s.refusals.pages = nil
	return pages
}
