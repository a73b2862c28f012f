package outbound

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// RedirectError says why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return e.Reason }

// private are the headers of a request that only the host and port that it was made for may
// see: credentials, and validators, which tell one visitor from another.
var private = []string{"Authorization", "Proxy-Authorization", "Cookie", "If-None-Match", "If-Modified-Since"}

// NoRedirects hands the redirecting response to the caller.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Redirects follows at most n redirects, to http and https only. A request to a host or port
// other than the first one carries no credentials and no validators, and one to a host or port
// other than the one before carries no Referer. What it refuses is a *RedirectError.
func Redirects(n int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > n {
			return &RedirectError{fmt.Sprintf("more than %d redirects", n)}
		}
		if s := req.URL.Scheme; s != "http" && s != "https" {
			return &RedirectError{fmt.Sprintf("a redirect leads to the scheme %q; only http and https are followed", s)}
		}
		if req.URL.Hostname() == "" {
			return &RedirectError{"a redirect leads to a URL without a host"}
		}
		last := via[len(via)-1].URL
		// The client sends what Location says here as Authorization. A relative one inherits that
		// of the URL before.
		if u := req.URL.User; u != nil && (u.String() != last.User.String() || !sameServer(req.URL, last)) {
			return &RedirectError{"a redirect leads to a URL with a user name or password in it, which is not followed"}
		}
		// The client copies the headers of the first request into each one that follows.
		if !sameServer(req.URL, via[0].URL) {
			for _, name := range private {
				req.Header.Del(name)
			}
		}
		if !sameServer(req.URL, last) {
			req.Header.Del("Referer")
		}
		return nil
	}
}

// sameServer reports whether a and b have the same host and port.
func sameServer(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
