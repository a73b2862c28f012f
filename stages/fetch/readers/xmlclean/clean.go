// Package xmlclean makes of XML as pages have it what a parser that knows nothing but XML can read.
package xmlclean

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// Clean returns body without what makes encoding/xml give up a page that people can read: the declaration, which
// may name another version, and the characters that XML does not permit, written as they are or as references.
// The control characters 128 to 159, and references to them, mean those of windows-1252. The entities that the page
// itself declares stand as their text, see expandEntities. It notes what it drops, and returns body itself where there
// is nothing to do.
func Clean(body []byte, passed *blocks.Passed) []byte {
	body = cleanCharacters(body, passed)
	start := bytes.TrimLeft(body, " \t\r\n")
	if end := bytes.Index(start, []byte("?>")); end > 0 && isDeclaration(start) {
		end += len(body) - len(start) + len("?>")
		body = append(blank(body[:end]), body[end:]...)
	}
	if bytes.Contains(body, []byte("<!DOCTYPE")) {
		body = expandEntities(body, passed)
	}
	if bytes.Contains(body, []byte("&#")) {
		body = cleanReferences(body, passed)
	}
	return body
}

// isDeclaration reports whether s begins with the declaration of XML.
func isDeclaration(s []byte) bool {
	rest, ok := bytes.CutPrefix(s, []byte("<?xml"))
	return ok && len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0
}

// blank returns as many spaces as s has bytes, and its line ends: positions behind it stay.
func blank(s []byte) []byte {
	out := bytes.Repeat([]byte{' '}, len(s))
	for i, b := range s {
		if b == '\n' {
			out[i] = b
		}
	}
	return out
}

// isOddByte says which bytes are, or begin, characters that XML may not permit.
var isOddByte = func() (t [256]bool) {
	for c := range ' ' {
		t[c] = c != '\t' && c != '\n' && c != '\r'
	}
	t["\ufffe"[0]], t["\u0080"[0]] = true, true
	return t
}()

// cleanCharacters drops the characters that XML does not permit.
func cleanCharacters(body []byte, passed *blocks.Passed) []byte {
	c := copier{body: body}
	for i, b := range body {
		if !isOddByte[b] {
			continue
		}
		if b < ' ' {
			noteCharacter(passed, body, i)
			c.replace(i, i+1, "")
		} else if b == "\u0080"[0] {
			if i+1 < len(body) && body[i+1] >= 0x80 && body[i+1] < 0xa0 && body[i+1] != 0x85 { // U+0085 is the end of a line of EBCDIC
				c.replace(i, i+2, string(charmap.Windows1252.DecodeByte(body[i+1])))
			}
		} else if s := body[i:]; bytes.HasPrefix(s, []byte("\ufffe")) || bytes.HasPrefix(s, []byte("\uffff")) {
			noteCharacter(passed, body, i)
			c.replace(i, i+len("\ufffe"), "")
		}
	}
	return c.result()
}

func noteCharacter(passed *blocks.Passed, body []byte, at int) {
	passed.Note("a control character was dropped", "control characters were dropped", body, at)
}

// cleanReferences does the same for references outside of comments and CDATA sections, which have none.
func cleanReferences(body []byte, passed *blocks.Passed) []byte {
	c := copier{body: body}
	for i := 0; i < len(body); {
		switch body[i] {
		case '<':
			i = behindUnparsed(body, i)
		case '&':
			i = c.replaceReference(i, passed)
		default:
			i++
		}
	}
	return c.result()
}

// behindUnparsed returns where the comment or CDATA section at body[i] ends, or i+1 if there is neither.
func behindUnparsed(body []byte, i int) int {
	for _, kind := range [...][2]string{{"<![CDATA[", "]]>"}, {"<!--", "-->"}} {
		if bytes.HasPrefix(body[i:], []byte(kind[0])) {
			if end := bytes.Index(body[i:], []byte(kind[1])); end > 0 {
				return i + end
			}
			return len(body)
		}
	}
	return i + 1
}

// replaceReference corrects the reference to a character at body[i], if it is one, and returns where to go on.
func (c *copier) replaceReference(i int, passed *blocks.Passed) int {
	r, length := characterAt(c.body[i:])
	switch {
	case length == 0:
		return i + 1
	case r >= 0x80 && r < 0xa0:
		c.replace(i, i+length, string(charmap.Windows1252.DecodeByte(byte(r))))
	case !isPermitted(r):
		noteCharacter(passed, c.body, i)
		c.replace(i, i+length, "")
	case c.body[i+2] == 'X': // encoding/xml knows the small letter only
		c.replace(i+2, i+3, "x")
	}
	return i + length
}

// characterAt returns the character that the reference at the beginning of s names, and how long that is; 0 if it is
// none.
func characterAt(s []byte) (r rune, length int) {
	const longest = len("&#x0010FFFF;")
	end := bytes.IndexByte(s[:min(len(s), longest)], ';')
	if end < len("&#1") || s[1] != '#' {
		return 0, 0
	}
	digits, base := string(s[2:end]), 10
	if s[2] == 'x' || s[2] == 'X' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, 0
	}
	return rune(n), end + 1
}

// isPermitted reports whether XML permits r.
func isPermitted(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r < 0xd800 || r > 0xdfff && r < 0xfffe || r > 0xffff
}

// copier copies body with replacements. out is what was copied, up to body[done].
type copier struct {
	body, out []byte
	done      int
}

// replace writes text in place of body[from:to].
func (c *copier) replace(from, to int, text string) {
	c.out = append(append(c.out, c.body[c.done:from]...), text...)
	c.done = to
}

func (c *copier) result() []byte {
	if c.done == 0 {
		return c.body
	}
	return append(c.out, c.body[c.done:]...)
}
