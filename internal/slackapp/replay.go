package slackapp

import (
	"errors"
	"sync"
	"time"
)

const (
	// maxSeen bounds the requests that are remembered. Only requests with a valid signature count.
	maxSeen = 10_000
	// patienceOfSlack is how long Slack waits for an answer: what it signed earlier before the start of
	// this process can only be a repetition.
	patienceOfSlack = 3 * time.Second
)

var (
	errRepeated = errors.New("the request was received before; Slack sends each request once")
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
	if signed.Before(s.start.Add(-patienceOfSlack).Truncate(time.Second)) {
		return errRepeated // perhaps a process before this one received it
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
