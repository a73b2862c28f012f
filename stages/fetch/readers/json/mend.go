package json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// mend returns raw, which is not valid, as what it was meant to be: with the lines of a sequence as Clean has them, and
// without those that are no JSON then, as a sequence where each line is a document, or else as Clean has it. It notes
// what it passes over, and reports whether the result is valid.
func mend(raw pipeline.Raw, passed *blocks.Passed) (pipeline.Raw, bool) {
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	e, odd := errors.AsType[*json.SyntaxError](json.Unmarshal(body, new(json.RawMessage)))
	switch lines, bad := validLines(body, isSequence(raw), passed); {
	case !odd:
		return raw, false
	case isSequence(raw) && len(lines) > 0:
		for _, at := range bad {
			passed.Note("a line that is no JSON was passed over", "lines that are no JSON were passed over", body, at)
		}
		raw.Body = lines
	case len(bad) == 0 && len(lines) > 0:
		passed.Note("more documents follow the first, and were read", "", body, int(e.Offset))
		_, parameters, _ := mime.ParseMediaType(raw.ContentType)
		raw.ContentType, raw.Body = mime.FormatMediaType(sequenceTypes[0], parameters), lines
	default:
		noteMended(passed, body, int(e.Offset))
		raw.Body = []byte(Clean(string(body)))
		return raw, json.Valid(raw.Body)
	}
	return raw, true
}

// noteMended notes what Clean did to body, whose first mistake ends at end.
func noteMended(passed *blocks.Passed, body []byte, end int) {
	// In "-Infinity" the mistake is behind the minus.
	if at := max(end-1, 0); literalLength(string(body[at:])) > 0 {
		passed.Note("a number that JSON does not have, such as NaN, was read as text", "", body, at)
		return
	}
	passed.Note("what is no JSON, such as a comment or a comma too many, was passed over", "", body, end)
}

// validLines returns the lines of body that are JSON, or as Clean has them where clean is set, which it notes. It
// returns where the other lines begin, too.
func validLines(body []byte, clean bool, passed *blocks.Passed) (valid []byte, bad []int) {
	at := 0
	for line := range bytes.Lines(bytes.ReplaceAll(body, []byte{0x1e}, []byte{' '})) {
		if json.Valid(line) {
			valid = append(valid, line...)
		} else if cleaned := []byte(Clean(string(line)) + "\n"); clean && json.Valid(cleaned) {
			e, _ := errors.AsType[*json.SyntaxError](json.Unmarshal(line, new(json.RawMessage)))
			noteMended(passed, body, at+int(e.Offset))
			valid = append(valid, cleaned...)
		} else if len(bytes.TrimSpace(line)) > 0 {
			bad = append(bad, at)
		}
		at += len(line)
	}
	return valid, bad
}

// wrappings are what stands around JSON in a script for parsers of old, or before it so that it is no script. A line
// that begins with slashes is a comment, but not where they only hide one of these.
var wrappings = []string{"<![CDATA[", "<!]]>", "]]>", "<!--", "-->", ")]}'"}

// assignment is what stands before JSON that a script gives to a variable.
var assignment = regexp.MustCompile(`^\s*(?:(?:var|let|const)\s+)?[\pL_$][\pL\pN_$.]*\s*=\s*[{\[]`)

// Clean returns s without comments, CDATA, commas too many, an assignment and what stands between values, and with
// escapes for the line breaks, tabs and quotes that stand raw in texts. NaN and Infinity become texts, and "20."
// becomes 20. It completes nothing: what is cut off stays an error.
func Clean(s string) string {
	var b strings.Builder
	if n := len(assignment.FindString(s)); n > 0 {
		s = s[n-1:]
	}
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
		if n := literalLength(s[i:]); n > 0 && (i == 0 || !inWord(s[i-1])) {
			b.WriteString(`"` + s[i:i+n] + `"`)
			comma, last = false, '"'
			i += n
			continue
		}
		isEmptyFraction := c == '.' && i > 0 && isDigit(s[i-1]) && (i+1 == len(s) || strings.IndexByte(" \t\r\n,}]", s[i+1]) >= 0)
		comma, last = false, c
		if isEmptyFraction {
			i++
			continue
		}
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

// literals are the numbers that JSON does not have and programs write.
var literals = []string{"NaN", "-NaN", "Infinity", "-Infinity"}

// literalLength returns the length of the number at the beginning of s that JSON does not have, or 0.
func literalLength(s string) int {
	for _, l := range literals {
		if strings.HasPrefix(s, l) && (len(s) == len(l) || !inWord(s[len(l)])) {
			return len(l)
		}
	}
	return 0
}

// inWord reports whether c may be a part of a word or number.
func inWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80 || c == '.' || c == '_' || c == '-'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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
