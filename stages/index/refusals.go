package index

import (
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

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

// Standing returns the origin of the subscription to the document and of the client of s on the
// page whose state st is, and whether it is paused. The origin is empty if there is no such
// subscription, or if it expired.
func Standing(st flow.State, page string, s pipeline.Subscription) (origin string, paused bool, err error) {
	document := flow.DocumentOf(page, s)
	e, err := subscription(st, document, s.Client)
	if err != nil {
		return "", false, err
	}
	if e != nil {
		return e.Origin, false, nil
	}
	x, err := expiredSubscription(st, document, s.Client)
	if err != nil || x == nil || x.End != flow.EndPaused {
		return "", false, err
	}
	return x.Origin, true, nil
}
