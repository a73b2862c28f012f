package vokter

import (
	"fmt"
	"time"
)

// shortage returns what keeps t from taking in more; nil for a transport that does not say.
func shortage(t Transport) error {
	if t, ok := t.(interface{ Ready() error }); ok {
		return t.Ready()
	}
	return nil
}

// roomOf returns what is closed when t takes in more again, or nil where it does.
func roomOf(t Transport) <-chan struct{} {
	if t, ok := t.(interface{ Room() <-chan struct{} }); ok {
		return t.Room()
	}
	return nil
}

// closeTransport closes the transport. It does not wait for ever: a disk that is full or
// broken can hold a commit as long as it likes, and nothing that was not committed is
// lost, since it begins anew.
func (r *Router) closeTransport() error {
	limit := closeTimeout
	if r.stuck {
		limit = time.Second
	}
	closed := make(chan error, 1)
	go func() { closed <- r.transport.Close() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		if r.cfg.Transport != nil {
			return fmt.Errorf("%s could not be closed within %v: see that it answers; what was not finished begins anew at the next start", r.where(), limit)
		}
		return fmt.Errorf("the store (%s) could not be closed within %v: see that its disk has room and works, then start again; what was not finished begins anew", r.where(), limit)
	}
}
