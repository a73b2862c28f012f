package slackapp

import (
	"errors"
	"sync"
	"time"
)

// maxSeen bounds the requests that are remembered. Only requests with a valid signature count.
const maxSeen = 10_000

var (
	errRepeated = errors.New("the request was received before; Slack sends each request once")
	errEarlier  = errors.New("the request was signed before this process started, and perhaps carried out by the one before; do it again")
	errTooMany  = errors.New("too many requests within a few minutes; try again later")
)

// seen remembers the signatures of requests for as long as they are valid, so that nobody who
// recorded a request can repeat it.
type seen struct {
	start time.Time

	mu    sync.Mutex
	until map[string]time.Time // by signature: when it becomes too old to be accepted
}

// newSeen returns a memory of a process that started at start.
func newSeen(start time.Time) *seen { return &seen{start: start, until: make(map[string]time.Time)} }

// add remembers a valid signature that was made at the time signed. It fails if that is known already.
func (s *seen) add(signature string, signed, now time.Time) error {
	if signed.Before(s.start.Truncate(time.Second)) {
		return errEarlier
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.until[signature]; ok {
		return errRepeated
	}
	if len(s.until) >= maxSeen {
		for old, end := range s.until {
			if end.Before(now) {
				delete(s.until, old)
			}
		}
		if len(s.until) >= maxSeen {
			return errTooMany
		}
	}
	s.until[signature] = signed.Add(maxAge)
	return nil
}

// remove forgets a signature whose request was not carried out.
func (s *seen) remove(signature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, signature)
}
