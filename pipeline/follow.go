package pipeline

import (
	"cmp"
	"fmt"
	"regexp"
)

// Bounds and defaults of a Follow.
const (
	MaxFollowDepth      = 10
	MaxFollowPages      = 10_000
	DefaultFollowPages  = 100
	DefaultSitemapPages = 1000

	maxFollowPatterns = 100
	maxFollowPattern  = 1000 // bytes
)

// Follow says which pages are watched besides the page of a subscription: those that it links to,
// those that these link to, and so on. Such a page is watched for as long as a path of links leads to
// it. Its first version notifies nobody.
//
// For a subscription with View.Sitemap the pages are those that the sitemap lists. Depth is 0 then, and
// the sitemaps that a sitemap index lists are neither counted as pages nor compared with Include and
// Exclude.
type Follow struct {
	// Depth is how many links a page may be away. 0 means 1: only the pages that the page itself links to.
	Depth int `json:"depth,omitempty"`
	// SameHost follows only links to the host and port of the subscription's URL, or to those that
	// this URL redirects to. Nil means true.
	SameHost *bool `json:"same_host,omitempty"`
	// MaxPages is how many linked pages are watched at the same time. 0 means DefaultFollowPages, or
	// DefaultSitemapPages with View.Sitemap. Pages that are fewer links away take precedence, then pages that are
	// linked to earlier in a page. A page that is watched keeps its place.
	MaxPages int `json:"max_pages,omitempty"`
	// Include are regular expressions: only pages whose URL matches one of them are watched. Empty: all.
	Include []string `json:"include,omitempty"`
	// Exclude are regular expressions: pages whose URL matches one of them are not watched.
	Exclude []string `json:"exclude,omitempty"`
}

// WithDefaults returns f with the defaults in place of zero fields, except those of View.Sitemap.
func (f Follow) WithDefaults() Follow {
	f.Depth = cmp.Or(f.Depth, 1)
	if f.SameHost == nil {
		same := true
		f.SameHost = &same
	}
	f.MaxPages = cmp.Or(f.MaxPages, DefaultFollowPages)
	return f
}

// validate calls bad for everything that is wrong with f.
func (f Follow) validate(bad func(field, format string, args ...any)) {
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"follow.include", f.Include}, {"follow.exclude", f.Exclude}} {
		if n := len(list.patterns); n > maxFollowPatterns {
			bad(list.field, "%d regular expressions are too many; at most %d", n, maxFollowPatterns)
		}
		for i, p := range list.patterns {
			field := fmt.Sprintf("%s[%d]", list.field, i)
			_, err := regexp.Compile(p)
			switch {
			case len(p) > maxFollowPattern:
				bad(field, "a regular expression of %d bytes is too long; at most %d", len(p), maxFollowPattern)
			case p == "":
				bad(field, "a regular expression must not be empty; it would match every URL")
			case err != nil:
				bad(field, "%s", printableError(err))
			}
		}
	}
}
