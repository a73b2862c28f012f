package chat

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/internal/post"
)

// Do sends body, which is JSON, to u with the headers h besides, and returns the answer,
// whatever its status. Nothing of u may be secret that the endpoint does not know.
func (e *Endpoint) Do(ctx context.Context, method string, u *url.URL, h http.Header, body []byte) (*post.Answer, error) {
	all := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(all, h)
	return e.post.Do(ctx, method, u, all, body)
}

// Token reports whether s can be a token in a header: visible characters of ASCII only.
func Token(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Title is the headline of m, with the page or the receiver that a health event is about.
func Title(m layout.Message) string {
	if m.Health && m.Title != "" {
		return m.Headline + ": " + m.Title
	}
	return m.Headline
}

// Below is what m says below its headline, as plain text; for a message that says no more
// it is the headline.
func Below(m layout.Message) string {
	if _, below, ok := strings.Cut(m.Plain(), "\n"); ok {
		return below
	}
	return m.Headline
}

// Encoded is how many bytes s, valid UTF-8, takes as a string of JSON.
func Encoded(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	// The separators of lines are written as \u2028 and \u2029.
	return n + 3*(strings.Count(s, "\u2028")+strings.Count(s, "\u2029"))
}

// Read reads JSON, of which what does not fit is as if it were not there.
func Read[T any](body []byte) T {
	var v, none T
	if json.Unmarshal(body, &v) != nil {
		return none
	}
	return v
}
