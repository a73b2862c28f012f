package pipelinetest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// requestRecorder decodes and keeps the requests that a server gets.
type requestRecorder struct {
	mu       sync.Mutex
	seen     []Arrived
	holdNext func() // called by the next request, which is not taken; nil takes it
}

// newFake returns a sink and a server that accepts what the sink sends.
func (s *httpSuite) newFake(t *testing.T) SinkFake {
	t.Helper()
	var r requestRecorder
	url := startServer(t, func(w http.ResponseWriter, req *http.Request) {
		if held := r.setHold(nil); held != nil {
			held()
			return
		}
		r.record(t, s.Decode, req)
		s.Accept(w, req)
	})
	return SinkFake{
		Sink: s.sinkFor(t, url), Got: r.arrived, Secrets: secrets, ForPeople: s.ForPeople,
		Hold: func() (<-chan struct{}, func()) {
			began, over := make(chan struct{}), make(chan struct{})
			r.setHold(func() { close(began); <-over })
			return began, func() { close(over) }
		},
	}
}

// setHold sets the function that the next request calls, and returns the one that was set before.
func (r *requestRecorder) setHold(held func()) (before func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.holdNext = r.holdNext, held
	return before
}

// record decodes a request and keeps it.
func (r *requestRecorder) record(t *testing.T, decode func(http.Header, []byte) (string, []string, error), req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Errorf("reading a request: %v", err)
		return
	}
	id, texts, err := decode(req.Header, body)
	if err != nil {
		t.Errorf("decoding a request: %v", err)
	}
	if req.Header.Get("X-Injected") != "" {
		t.Errorf("%.40q became a header", texts)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, Arrived{id, texts})
}

func (r *requestRecorder) arrived() []Arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// hostileTexts are texts that pages could hold.
var hostileTexts = []string{
	"<!channel> <@U123> <http://evil.example|bank.example>", "</script><script>alert(1)</script>", "{{.}} {{range 9}}{{end}}",
	"%s %d %!x(MISSING) %", "a+b&c=d;e", "X-Header: a\r\nX-Injected: b\r\n\r\nbody", "nul\x00bell\x07", "turn\u202Earound\u2066",
	"\xff\xfe invalid \xc3", "\u2028\u2029", `quote " and \ and '`, "*bold* _it_ ~s~ `code` :emoji: #channel @here", "data:\x1b[31mred",
}

// sameText reports whether got is the text of a page as it is, in valid UTF-8.
func sameText(got, text string) bool {
	// A run of invalid bytes may become one mark or one for each.
	norm := func(s string) string { return strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD") }
	return norm(got) == norm(strings.ToValidUTF8(text, "\uFFFD"))
}

// readableText reports whether got holds parts of the text of a page, in valid UTF-8, with
// nothing in it that steers a screen.
func readableText(got, text string) bool {
	if !utf8.ValidString(got) || strings.ContainsFunc(got, controlsTerminal) {
		return false
	}
	rest := visibleText(text)
	for part := range strings.SplitSeq(strings.ReplaceAll(got, "...", "…"), "…") {
		_, after, ok := strings.Cut(rest, visibleText(part))
		if !ok {
			return false
		}
		rest = after
	}
	return visibleText(got) != "" || visibleText(text) == ""
}

// controlsTerminal reports whether r does more to a screen than appear there, such as reverse the text.
func controlsTerminal(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069'
}

// visibleText is what there is to see of s, without blanks.
func visibleText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}
