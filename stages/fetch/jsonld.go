package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// decodeJSONLD returns the values in a script of JSON-LD: usually one. What shops write beside it is passed over, see
// cleanJSON. With an error it returns the values before it.
func decodeJSONLD(s string) ([]any, error) {
	values, err := decodeAll(s)
	if err == nil {
		return values, nil
	}
	lenient, err := decodeAll(cleanJSON(s))
	if err != nil && strings.HasPrefix(strings.TrimSpace(s), "{&quot;") {
		return decodeAll(cleanJSON(html.UnescapeString(s)))
	}
	return lenient, err
}

// decodeAll decodes the JSON values of s, which follow each other.
func decodeAll(s string) (values []any, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return values, err
		}
		values = append(values, v)
	}
}

// wrappings are what stands around JSON in a script for parsers of old. A line that begins with slashes is a comment,
// but not where they only hide one of these.
var wrappings = []string{"<![CDATA[", "<!]]>", "]]>", "<!--", "-->"}

// cleanJSON returns s without comments, CDATA, commas too many and what stands between values, and with escapes for the line
// breaks, tabs and quotes that stand raw in texts. It completes nothing: what is cut off stays an error.
func cleanJSON(s string) string {
	var b strings.Builder
	depth, comma := 0, false // a comma is written when a value follows
	last := byte('[')        // the mark before it
	for i := 0; i < len(s); {
		if n := passOver(s[i:]); n > 0 {
			b.WriteByte(' ')
			i += n
			continue
		}
		c := s[i]
		if c == ',' {
			comma = true
			i++
			continue
		}
		if comma && depth > 0 && c != '}' && c != ']' && last != '{' && last != '[' {
			b.WriteByte(',')
		}
		comma, last = false, c
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			i += writeString(&b, s[i:])
			continue
		}
		if c < ' ' {
			c = ' '
		}
		b.WriteByte(c)
		i++
	}
	return b.String()
}

// passOver returns the length of what is no JSON at the beginning of s.
func passOver(s string) int {
	for _, w := range wrappings {
		if strings.HasPrefix(s, w) {
			return len(w)
		}
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case strings.HasPrefix(s, "//"):
		rest := strings.TrimLeft(s[2:], " \t")
		for _, w := range wrappings {
			if strings.HasPrefix(rest, w) {
				return len(s) - len(rest) + len(w)
			}
		}
		if end := strings.IndexAny(s, "\r\n"); end >= 0 {
			return end
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		if end := strings.Index(s[2:], "*/"); end >= 0 {
			return end + 4
		}
		return len(s)
	case strings.ContainsRune(" \t\r\n;\u00a0\u200b\u2028\u2029\ufeff", r):
		return n
	}
	return 0
}

// writeString writes the text that begins with a quote at s, and returns its length.
func writeString(b *strings.Builder, s string) int {
	b.WriteByte('"')
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			i++
			switch next := s[i]; {
			case next == '\n' || next == '\r': // a text that goes on in the next line
			case strings.IndexByte(`"\/bfnrt`, next) >= 0, next == 'u' && isHex(s[i+1:]):
				b.WriteByte('\\')
				b.WriteByte(next)
			default: // \' is no escape of JSON
				b.WriteByte(next)
			}
		case c == '"' && endsString(s[i+1:]):
			b.WriteByte('"')
			return i + 1
		case c == '"':
			b.WriteString(`\"`)
		case c < ' ':
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return len(s)
}

// endsString reports whether a quote before s ends a text: a mark of JSON or a comment follows.
func endsString(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s == "" || strings.IndexByte(",:}]/<", s[0]) >= 0
}

func isHex(s string) bool {
	return len(s) >= 4 && strings.Trim(s[:4], "0123456789abcdefABCDEF") == ""
}
