package slackapp

import (
	"errors"
	"sync"
	"time"
)

// maxRemembered bounds the requests that are remembered. Only requests with a valid signature count.
const maxRemembered = 10_000

var (
	errRepeated    = errors.New("the request was received before; Slack sends each request once")
	errBeforeStart = errors.New("the request was signed before this process started, and perhaps carried out by the one before; do it again")
	errTooMany     = errors.New("too many requests within a few minutes; try again later")
)

// replayGuard remembers the signatures of requests for as long as they are valid, so that nobody who
// recorded a request can repeat it.
type replayGuard struct {
	start time.Time

	mu      sync.Mutex
	expires map[string]time.Time // by signature: when it becomes too old to be accepted
}

// newReplayGuard returns the replayGuard of a process that started at start.
func newReplayGuard(start time.Time) *replayGuard {
	return &replayGuard{start: start, expires: make(map[string]time.Time)}
}

// add remembers a valid signature that was made at the time signed. It fails if that is known already.
func (s *replayGuard) add(signature string, signed, now time.Time) error {
	if signed.Before(s.start.Truncate(time.Second)) {
		return errBeforeStart
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.expires[signature]; ok {
		return errRepeated
	}
	if len(s.expires) >= maxRemembered {
		for old, end := range s.expires {
			if end.Before(now) {
				delete(s.expires, old)
			}
		}
		if len(s.expires) >= maxRemembered {
			return errTooMany
		}
	}
	s.expires[signature] = signed.Add(maxSignatureAge)
	return nil
}

// remove forgets a signature whose request was not carried out.
func (s *replayGuard) remove(signature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expires, signature)
}
