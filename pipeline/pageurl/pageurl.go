// Package pageurl checks the URLs of pages and writes them in one spelling.
package pageurl

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns the one spelling of the URL raw that all keys use: scheme and host in lower case, default port and
// fragment dropped, empty path "/", path and query encoded by Encode. In http and https the path has no segments "."
// and "..", in file URLs no doubled slashes either, and their host "localhost" is dropped. It fails where raw is not an
// absolute URL with a host, or a file URL; the error is written for the user.
func Canonical(raw string) (string, error) {
	u, err := url.Parse(Encode(raw))
	if err != nil {
		return "", fmt.Errorf("%q is not a URL such as https://example.com/page", Redacted(raw))
	}
	if u.Scheme == "" || (u.Hostname() == "" && u.Scheme != "file") || u.Opaque != "" {
		if likely, err := url.Parse("https://" + Encode(raw)); err == nil && u.Opaque == "" && strings.Contains(likely.Hostname(), ".") {
			return "", fmt.Errorf("%q is not an absolute URL; write %s", Redacted(raw), Redacted(likely.String()))
		}
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
	u.Path = cmp.Or(u.Path, "/")
	if defaultPort(u.Scheme) != "" {
		u = resolved(u)
	}
	if u.Scheme == "file" {
		if u.Host == "localhost" {
			u.Host = ""
		}
		u = cleaned(u)
	}
	return u.String(), nil
}

var decodedDots = strings.NewReplacer("%2e", ".", "%2E", ".")

// resolved returns u without the segments "." and ".." of its path, which the URL standard knows percent-encoded, too.
// Empty segments stay.
func resolved(u *url.URL) *url.URL {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		if dots := decodedDots.Replace(s); dots == "." || dots == ".." {
			segments[i] = dots
		}
	}
	v := *u
	v.RawPath = strings.Join(segments, "/")
	v.Path, _ = url.PathUnescape(v.RawPath) // EscapedPath is valid, and dots are.
	return v.ResolveReference(&v)
}

// cleaned returns u with a clean path. A slash at its end stays: it stands for a folder.
func cleaned(u *url.URL) *url.URL {
	clean := path.Clean(u.Path)
	if strings.HasSuffix(u.Path, "/") && clean != "/" {
		clean += "/"
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User, Path: clean, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
}

// MaxLength is the largest length of the URL of a page, in bytes.
const MaxLength = 8192

// Check returns why the page of the URL raw cannot be watched, in words for the user, or nil. The
// URL must be absolute, have at most MaxLength bytes, and hold no user name or password, because
// logs and notifications show it. Where schemes are given, it must have one of them.
func Check(raw string, schemes ...string) error {
	if len(raw) > MaxLength {
		return fmt.Errorf("a URL of %d bytes is too long; at most %d", len(raw), MaxLength)
	}
	page, err := Canonical(raw)
	if err != nil {
		return err
	}
	if len(page) > MaxLength {
		return fmt.Errorf("a URL of %d bytes, with its characters percent-encoded, is too long; at most %d", len(page), MaxLength)
	}
	if u, err := url.Parse(page); err == nil && u.User != nil {
		return fmt.Errorf("%s has a user name or password in it, which would be shown in logs and notifications; leave it out", Redacted(raw))
	}
	if scheme, _, _ := strings.Cut(page, ":"); len(schemes) > 0 && !slices.Contains(schemes, scheme) {
		last := len(schemes) - 1
		return fmt.Errorf("%q has the scheme %s; only %s and %s can be watched", raw, scheme, strings.Join(schemes[:last], ", "), schemes[last])
	}
	return nil
}

// Redacted returns the URL raw without its user name and password. Raw need not be a valid URL,
// since a password that is not encoded can make it invalid.
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

// Host returns the host and port of the canonical URL page: requests to one Host keep a distance.
func Host(page string) string {
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

// The percent-encode sets of the URL standard (url.spec.whatwg.org), without control characters and bytes
// beyond ASCII, which are in all of them. The path's has also "|" and "\": net/url takes a path with one
// for unencoded, and would write "%2F" in it as "/".
const (
	encodedInPath  = " \"<>^`{}|\\"
	encodedInQuery = " \"<>'"
)

// withoutBreaks removes what browsers remove wherever it is.
var withoutBreaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// Encode returns the URL or reference ref with the characters percent-encoded that browsers encode in a
// path and a query, and without a fragment. What is encoded already stays. A % in the path that begins
// no code, as in /100%, becomes %25. In http and https, and in a reference, a \ of the path is a /.
func Encode(ref string) string {
	ref = strings.TrimFunc(ref, func(c rune) bool { return c <= ' ' })
	ref = withoutBreaks.Replace(ref)
	ref, _, _ = strings.Cut(ref, "#")
	rest, query, hasQuery := strings.Cut(ref, "?")
	scheme, _, found := strings.Cut(rest, ":")
	if !found || strings.ContainsAny(scheme, `/\`) {
		scheme = ""
	}
	web := scheme == "" || defaultPort(strings.ToLower(scheme)) != ""
	if web {
		rest = strings.ReplaceAll(rest, `\`, "/")
	}
	path := 0 // where it begins
	if scheme != "" {
		path = len(scheme) + 1
	}
	if authority, ok := strings.CutPrefix(rest[path:], "//"); ok {
		if path = strings.IndexByte(authority, '/'); path < 0 {
			path = len(rest)
		} else {
			path += len(rest) - len(authority)
		}
	}
	var b strings.Builder
	b.Grow(len(ref))
	b.WriteString(rest[:path])
	for i := path; i < len(rest); i++ {
		if c := rest[i]; c == '%' && !isCode(rest[i:]) {
			b.WriteString("%25")
		} else {
			writeEncoded(&b, c, encodedInPath)
		}
	}
	if hasQuery {
		b.WriteByte('?')
	}
	set := encodedInQuery
	if !web {
		set = strings.TrimSuffix(set, "'")
	}
	for i := range len(query) {
		writeEncoded(&b, query[i], set)
	}
	return b.String()
}

// isCode reports whether s begins with a percent-encoded byte.
func isCode(s string) bool {
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// writeEncoded writes c to b, percent-encoded if it is in set, a control character, or beyond ASCII.
func writeEncoded(b *strings.Builder, c byte, set string) {
	const hex = "0123456789ABCDEF"
	if c > ' ' && c <= '~' && strings.IndexByte(set, c) < 0 {
		b.WriteByte(c)
		return
	}
	b.WriteByte('%')
	b.WriteByte(hex[c>>4])
	b.WriteByte(hex[c&15])
}
