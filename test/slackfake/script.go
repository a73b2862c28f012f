package slackfake

import (
	"net/http"
)

// Answer is one of a script, in place of what the fake would answer.
type Answer struct {
	// Error is Slack's word for what is wrong; the status is the one that goes with it.
	Error string
	// Status, Header and Body are sent as they are where Status is not 0.
	Status int
	Header http.Header
	Body   string
	// Lost has the message posted, and the connection break before the answer.
	Lost bool
}

// RateLimited is the answer 429, with the value of Retry-After.
func RateLimited(retryAfter string) Answer {
	return Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {retryAfter}}, Body: `{"ok":false,"error":"ratelimited"}`}
}

// Script has the next requests for a channel answered so.
func (s *Slack) Script(channel string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := channelID(channel)
	s.scripts[id] = append(s.scripts[id], answers...)
}

// scripted gives the next answer of the script for m's channel, if there is one. fail
// writes an error.
func (s *Slack) scripted(w http.ResponseWriter, m *Message, fail func(word string)) bool {
	a, ok := s.nextAnswer(m.Channel)
	if !ok {
		return false
	}
	if a.Lost {
		s.post(m)
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	word := a.Error
	if word == "" {
		word = http.StatusText(a.Status)
	}
	s.requests = append(s.requests, word)
	s.mu.Unlock()
	if a.Status == 0 {
		fail(a.Error)
		return true
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(a.Body))
	return true
}

func (s *Slack) nextAnswer(channel string) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.scripts[channel]
	if len(q) == 0 {
		return Answer{}, false
	}
	s.scripts[channel] = q[1:]
	return q[0], true
}
