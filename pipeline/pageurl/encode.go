package pageurl

import (
	"strings"
)

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
