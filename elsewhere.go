package vokter

import (
	"errors"
	"fmt"
)

// ErrElsewhere says that this process does not know how a page does, since another one
// looks after it, or none at the moment. It comes of a Transport whose lanes are shared
// with other processes.
var ErrElsewhere = errors.New("another process looks after it, or none at the moment; ask each of the others")

// owns reports whether this process handles the messages of key, and so has their state.
func (r *Router) owns(key string) bool {
	t, ok := r.transport.(interface{ Owns(key string) bool })
	return !ok || t.Owns(key)
}

// tenure is another number each time that this process gets the messages of key to handle:
// what others were asked for in an earlier one may have been lost with them.
func (r *Router) tenure(key string) uint64 {
	if t, ok := r.transport.(interface{ Tenure(key string) uint64 }); ok {
		return t.Tenure(key)
	}
	return 0
}

// here returns an error of ErrElsewhere for a page that this process knows nothing of.
func (r *Router) here(page string) error {
	if r.owns(page) {
		return nil
	}
	return fmt.Errorf("%s: %w", page, ErrElsewhere)
}
