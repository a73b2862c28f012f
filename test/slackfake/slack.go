// Package slackfake is a Slack for tests: chat.postMessage and incoming webhooks, with the
// limits, threads and errors of the real ones. Where the real limits are not documented it
// is as strict as anything that was seen.
package slackfake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// Token is the bot token that the fake knows.
	Token = "xoxb-1234567890-fakeFAKEfakeFAKE"
	// secret is the part of a webhook's URL that nobody may know.
	secret = "hookHOOKhookHOOKhookHOOK"
	// Burst is how many messages a channel takes at once; then it takes one a second.
	Burst = 3
)

// Slack is a workspace. Any channel exists that is named as such: C1, or #general. It is
// safe for concurrent use.
type Slack struct {
	// URL is where the fake listens, without a slash at its end.
	URL string

	now func() time.Time

	mu       sync.Mutex
	messages []Message
	requests []string
	scripts  map[string][]Answer
	buckets  map[string]bucket
	locked   map[string]bool // threads, by their ts
	lastTS   time.Time
	unbound  bool
}

// Message is one that was posted.
type Message struct {
	// Channel is an ID, and TS unique in it.
	Channel, TS string
	// Asked is the channel as the request named it.
	Asked string
	// Thread is the TS of the message that it answers; empty at the top level.
	Thread    string
	Broadcast bool
	Text      string
	// Blocks and Metadata are as they came; nil if there were none.
	Blocks, Metadata json.RawMessage
	// Unfurls says that links or media in it may be looked up by Slack, Markup that Text is
	// read as mrkdwn.
	Unfurls, Markup bool
	// Webhook says that it came through an incoming webhook.
	Webhook bool
	At      time.Time
}

// Start returns a fake that listens until the test ends. now is its clock; nil means
// time.Now.
func Start(t testing.TB, now func() time.Time) *Slack {
	t.Helper()
	s := New(now)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// New returns a fake to be served.
func New(now func() time.Time) *Slack {
	if now == nil {
		now = time.Now
	}
	return &Slack{now: now, scripts: make(map[string][]Answer), buckets: make(map[string]bucket), locked: make(map[string]bool)}
}

// API is the base of the API, with the slash at its end.
func (s *Slack) API() string { return s.URL + "/api/" }

// Webhook is the URL of an incoming webhook for a channel.
func (s *Slack) Webhook(channel string) string {
	return s.URL + "/services/T1/" + channelID(channel) + "/" + secret
}

// Unbound lifts the limit of messages per second, for benchmarks.
func (s *Slack) Unbound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unbound = true
}

// Messages returns what was posted so far, in its order.
func (s *Slack) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// Requests returns for each request so far, in their order, Slack's word for what is wrong; empty
// where the message was posted.
func (s *Slack) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Delete removes a message: answers to it are posted at the top level, without a word.
func (s *Slack) Delete(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.messages {
		if s.messages[i].TS == ts {
			s.messages = append(s.messages[:i:i], s.messages[i+1:]...)
			return
		}
	}
}

// Lock makes a message refuse answers.
func (s *Slack) Lock(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked[ts] = true
}

// ServeHTTP serves the API and the webhooks.
func (s *Slack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
	case r.URL.Path == "/api/chat.postMessage":
		s.postMessage(w, r)
	case strings.HasPrefix(r.URL.Path, "/services/"):
		s.webhook(w, r)
	default:
		http.NotFound(w, r)
	}
}

// post posts m, unless something is wrong with it; then it returns Slack's word for that.
func (s *Slack) post(m *Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.At = s.now()
	word := s.refusal(m)
	if word == "" {
		m.TS = s.nextTS(m.At)
		s.messages = append(s.messages, *m)
	}
	s.requests = append(s.requests, word)
	return word
}

// refusal says what is wrong with m. s.mu is held.
func (s *Slack) refusal(m *Message) string {
	if word := check(m); word != "" {
		return word
	}
	if m.Thread != "" {
		if s.locked[m.Thread] {
			return "cannot_reply_to_message"
		}
		if !s.has(m.Channel, m.Thread) {
			m.Thread, m.Broadcast = "", false
		}
	}
	if !s.unbound && !s.take(m.Channel, m.At) {
		return "ratelimited"
	}
	return ""
}

func (s *Slack) has(channel, ts string) bool {
	for _, m := range s.messages {
		if m.Channel == channel && m.TS == ts {
			return true
		}
	}
	return false
}

// nextTS returns a new ts: seconds and microseconds. s.mu is held.
func (s *Slack) nextTS(at time.Time) string {
	at = at.Truncate(time.Microsecond)
	if !at.After(s.lastTS) {
		at = s.lastTS.Add(time.Microsecond)
	}
	s.lastTS = at
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}

// bucket is what a channel may take before it has to wait.
type bucket struct {
	tokens float64
	at     time.Time
}

// take takes one message out of the channel's bucket. s.mu is held.
func (s *Slack) take(channel string, now time.Time) bool {
	b, ok := s.buckets[channel]
	if !ok {
		b.tokens = Burst
	} else {
		b.tokens = min(Burst, b.tokens+now.Sub(b.at).Seconds())
	}
	b.at = now
	ok = b.tokens >= 1
	if ok {
		b.tokens--
	}
	s.buckets[channel] = b
	return ok
}

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

var idForm = regexp.MustCompile(`^[CDG][A-Z0-9]*$`)

// channelID is the ID of a channel, empty if it is not named as one.
func channelID(name string) string {
	if n, ok := strings.CutPrefix(name, "#"); ok && n != "" {
		return "C" + strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToUpper(n))
	}
	if idForm.MatchString(name) {
		return name
	}
	return ""
}

// postMessage is the method chat.postMessage, with a form as its body.
func (s *Slack) postMessage(w http.ResponseWriter, r *http.Request) {
	fail := func(word string) {
		if word == "ratelimited" {
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusTooManyRequests, map[string]any{"ok": false, "error": word})
			return
		}
		answer(w, http.StatusOK, map[string]any{"ok": false, "error": word})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		fail("invalid_form_data")
		return
	}
	m := Message{
		Channel: channelID(form.Get("channel")), Asked: form.Get("channel"), Thread: form.Get("thread_ts"),
		Broadcast: form.Get("reply_broadcast") == "true",
		Text:      form.Get("text"), Markup: form.Get("mrkdwn") != "false",
		Unfurls: form.Get("unfurl_links") != "false" || form.Get("unfurl_media") != "false",
		Blocks:  raw(form, "blocks"), Metadata: raw(form, "metadata"),
	}
	switch token := form.Get("token"); {
	case token == "":
		fail("not_authed")
	case token != Token:
		fail("invalid_auth")
	case m.Channel == "":
		fail("channel_not_found")
	case s.scripted(w, &m, fail):
	default:
		if word := s.post(&m); word != "" {
			fail(word)
			return
		}
		said := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "bot_id": "B1"}
		if m.Thread != "" {
			said["thread_ts"] = m.Thread
		}
		answer(w, http.StatusOK, map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS, "message": said})
	}
}

// raw is a field of a form as JSON.
func raw(form url.Values, name string) json.RawMessage {
	if !form.Has(name) {
		return nil
	}
	return json.RawMessage(form.Get(name))
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

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
