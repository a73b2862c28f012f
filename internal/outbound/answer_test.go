package outbound

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TestRetryAfterOnAnyFailure checks that the wait that a receiver asks for does not depend on
// what it refuses.
func TestRetryAfterOnAnyFailure(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com"}
	for status, want := range map[int]pipeline.Class{
		302: pipeline.ClassRetry, 400: pipeline.ClassRefused, 401: pipeline.ClassRetry, 404: pipeline.ClassRetry,
		413: pipeline.ClassRefused, 429: pipeline.ClassLimited, 500: pipeline.ClassRetry, 503: pipeline.ClassRetry,
	} {
		a := &Answer{Status: status, Header: http.Header{"Retry-After": {"90"}}, url: u, now: time.Now()}
		if class, after := pipeline.ClassOf(a.Err()); class != want || after != 90*time.Second {
			t.Errorf("%d: class %d after %s, want %d after 1m30s", status, class, after, want)
		}
	}
	a := &Answer{Status: http.StatusNoContent, Header: http.Header{"Retry-After": {"90"}}}
	if err := a.Err(); err != nil {
		t.Errorf("204: got %v", err)
	}
}

// TestRedirectsAreNamedInShort: who redirects chooses the name of the host.
func TestRedirectsAreNamedInShort(t *testing.T) {
	for host, want := range map[string]string{
		"b.example":                 "answered 302 Found, to https://b.example; redirects are not followed",
		"b\u202e.example":           "answered 302 Found, to https://b.example; redirects are not followed",
		strings.Repeat("x", 30_000): "answered 302 Found, to https://" + strings.Repeat("x", 92) + " ...; redirects are not followed",
	} {
		a := &Answer{Status: http.StatusFound, Header: http.Header{"Location": {"https://" + host + "/?secret"}}, url: &url.URL{Scheme: "https", Host: "a.example"}}
		if got := a.Err().Error(); got != want {
			t.Errorf("got %.300q, want %q", got, want)
		}
	}
}

func TestObserver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := local(t)
	var seen string
	if _, err := s.Do(WithObserver(t.Context(), func(status string) { seen = status }), http.MethodGet, u, nil, nil); err != nil {
		t.Fatal(err)
	}
	if want := "418 I'm a teapot"; seen != want {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
