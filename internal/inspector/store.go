// Package inspector reads the committed state of a pipeline into what package inspect has: its pages, subscriptions and
// receivers ([List]), and what happened to the last changes of a page ([Explain]). It changes nothing.
package inspector

import (
	"fmt"
	"iter"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// Store is the committed state of a pipeline. Every [flow.Transport] is one.
type Store interface {
	// State returns the committed state of a consumer group for one key.
	State(group, key string) flow.State
	// States iterates over the committed state of a consumer group in the lanes that this process
	// owns, in the order of the keys. It begins behind the key after; an empty after means at the
	// beginning.
	States(group, after string) iter.Seq2[string, flow.State]
	// Owns reports whether this process owns the lane of key.
	Owns(key string) bool
	// Owner names the process that owns the lane of key; "" if that is not known.
	Owner(key string) string
}

// checkOwned returns an error that wraps ErrElsewhere where this process does not own page.
func checkOwned(s Store, page string) error {
	if s.Owns(page) {
		return nil
	}
	if owner := s.Owner(page); owner != "" {
		return &ownedElsewhereError{page, owner}
	}
	return fmt.Errorf("%s: %w", page, inspect.ErrElsewhere)
}

// ownedElsewhereError is ErrElsewhere with the name of the owner.
type ownedElsewhereError struct{ page, owner string }

func (e *ownedElsewhereError) Error() string {
	return fmt.Sprintf("%s: another process owns it: %s; ask that one", e.page, e.owner)
}

func (e *ownedElsewhereError) Is(target error) bool { return target == inspect.ErrElsewhere }
