package pipeline

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// View is everything that alters a document's text. The zero View is the whole page.
type View struct {
	// Select scopes the text to what matches one of these selectors, in document order.
	Select []Selector `json:"select,omitempty"`
	// Remove takes what matches out of it.
	Remove []Selector `json:"remove,omitempty"`
	// Ignore blanks what matches one of these regular expressions (RE2).
	Ignore []string `json:"ignore,omitempty"`
	// Confirm is for how many checks in a row a new text must stand before it is a
	// version; 0 and 1 mean at once.
	Confirm int `json:"confirm,omitempty"`
}

// Selector is a CSS selector, or a range from the start of the first match of From to
// the start of the first match of To behind it (the end of the page where To is empty).
type Selector struct {
	CSS  string `json:"css,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// IsZero reports whether v is the whole page, taken as it is.
func (v View) IsZero() bool {
	return len(v.Select) == 0 && len(v.Remove) == 0 && len(v.Ignore) == 0 && v.Confirm <= 1
}

// CanonicalURL returns the spelling under which raw names its page: scheme and host
// in lower case, default port and fragment dropped, empty path "/", query untouched.
// It refuses what is no absolute URL with a host, with a message for the user.
func CanonicalURL(raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", fmt.Errorf("%q is not a URL", Redacted(raw))
	}
	if u.Scheme == "" || (u.Host == "" && u.Scheme != "file") || u.Opaque != "" {
		return "", fmt.Errorf("%q is not an absolute URL such as https://example.com/page", Redacted(raw))
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("%q has no valid port; ports are 1 to 65535", Redacted(raw))
		}
	}
	u.Scheme = strings.ToLower(u.Scheme)
	u.Host = strings.ToLower(u.Host)
	if h, p, err := net.SplitHostPort(u.Host); err == nil && (p == "" || p == defaultPort(u.Scheme)) {
		u.Host = h
		if strings.Contains(h, ":") {
			u.Host = "[" + h + "]"
		}
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), nil
}

// MaxURL is how long the URL of a page may be, in bytes.
const MaxURL = 8192

// CheckURL returns what is wrong with raw as a page to watch, for the user, or nil: it
// must be an absolute URL of at most MaxURL bytes, without a password, which would be shown in
// logs and notifications. Where schemes are given, it has one of them.
func CheckURL(raw string, schemes ...string) error {
	if len(raw) > MaxURL {
		return fmt.Errorf("a URL of %d bytes is too long; at most %d", len(raw), MaxURL)
	}
	page, err := CanonicalURL(raw)
	if err != nil {
		return err
	}
	if u, err := url.Parse(strings.TrimSpace(raw)); err == nil && u.User != nil {
		return fmt.Errorf("%s has a user name or password in it, which would be shown in logs and notifications; leave it out", Redacted(raw))
	}
	if scheme, _, _ := strings.Cut(page, ":"); len(schemes) > 0 && !slices.Contains(schemes, scheme) {
		last := len(schemes) - 1
		return fmt.Errorf("%q has the scheme %s; only %s and %s can be watched", raw, scheme, strings.Join(schemes[:last], ", "), schemes[last])
	}
	return nil
}

// Redacted returns raw without a user name and a password, of which either may be secret. It
// need not be a URL: a password that is not encoded may be why it is none.
func Redacted(raw string) string {
	scheme, rest, found := strings.Cut(raw, "//")
	if found {
		scheme += "//"
	} else {
		scheme, rest = "", raw
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || strings.ContainsAny(rest[:at], "/?#") && !strings.ContainsAny(rest[:at], ":@") { // it is in the path
		return raw
	}
	return scheme + "xxxxx" + rest[at:]
}

// HostKey returns the host that politeness counts for the canonical URL page: name and port.
func HostKey(page string) string {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" {
		return page
	}
	if u.Port() == "" && defaultPort(u.Scheme) != "" {
		return net.JoinHostPort(u.Hostname(), defaultPort(u.Scheme))
	}
	return u.Host
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// Bounds of View.Ignore. A program is what a regular expression is compiled to: the time that
// it takes is its instructions times the characters that it is matched against.
const (
	MaxPatterns      = 100
	MaxPatternLength = 1000 // characters
	MaxProgram       = 1000 // instructions
)

// CompilePattern compiles one regular expression of View.Ignore. Its error says, in words for
// the user, why it cannot be used.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if n := utf8.RuneCountInString(pattern); n > MaxPatternLength {
		return nil, fmt.Errorf("a regular expression of %d characters is too long; at most %d", n, MaxPatternLength)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	if n := len(program.Inst); n > MaxProgram {
		return nil, fmt.Errorf("%q is too large: it compiles to %d instructions, and at most %d are possible; write * or + in place of large counts such as {1,30}", pattern, n, MaxProgram)
	}
	return regexp.Compile(pattern)
}

// MaxText is the largest text that a version may have, in bytes.
const MaxText = 2 << 20
