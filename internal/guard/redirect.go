package guard

import (
	"fmt"
	"net/http"
)

// RedirectError says why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return e.Reason }

// noRedirects hands the redirecting response to the caller.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Redirects follows at most n redirects, to http and https only. What it refuses is a
// *RedirectError.
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
		return nil
	}
}
