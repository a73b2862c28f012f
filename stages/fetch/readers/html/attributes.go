package html

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// element is what the text rules know of an element.
type element struct {
	atom   atom.Atom
	kind   kind
	hidden bool   // by an attribute
	email  string // the scrambled address that it stands for
	link   string // the scrambled address that it links to
	lang   string // of the html element
}

// note takes note of one attribute.
func (el *element) note(a attribute, value string) {
	switch a {
	case attrHidden:
		el.hide()
	case attrStyle:
		if invisible(value) {
			el.hide()
		}
	case attrEmail:
		if el.kind == 0 {
			el.email = unscramble(value)
		}
	case attrHref:
		if el.atom == atom.A {
			if _, code, ok := strings.Cut(value, emailPath); ok {
				el.link = unscramble(code)
			}
		}
	case attrLang:
		if el.atom == atom.Html {
			el.lang = value
		}
	}
}

// hide hides the element. Pages hide themselves as a whole until a script has run, so the
// outermost elements stay visible.
func (el *element) hide() {
	if el.atom != atom.Html && el.atom != atom.Body && el.atom != atom.Head {
		el.hidden = true
	}
}

// attribute is a set of the attributes that matter.
type attribute uint8

const (
	attrHidden attribute = 1 << iota
	attrStyle
	attrEmail
	attrHref
	attrLang
)

func wanted[T string | []byte](key T) attribute {
	switch string(key) {
	case "hidden":
		return attrHidden
	case "style":
		return attrStyle
	case "data-cfemail":
		return attrEmail
	case "href":
		return attrHref
	case "lang", "xml:lang":
		return attrLang
	}
	return 0
}

// invisible reports whether a style attribute hides its element. The last declaration of
// a property counts.
func invisible(style string) bool {
	none, gone := false, false
	for d := range strings.SplitSeq(style, ";") {
		name, value, ok := strings.Cut(d, ":")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, "!")
		value = strings.ToLower(strings.TrimSpace(value))
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "display":
			none = value == "none"
		case "visibility":
			gone = value == "hidden"
		}
	}
	return none || gone
}

// Cloudflare scrambles addresses anew on every fetch: the text of an element with
// data-cfemail is replaced by a placeholder, and the target of a link by emailPath.
const (
	emailPath   = "/cdn-cgi/l/email-protection#"
	placeholder = "[email protected]"
)

// unscramble returns the address that code hides, or "" where it is none: pairs of
// hexadecimal digits, the first being the key of all others.
func unscramble(code string) string {
	b, err := hex.DecodeString(code)
	if err != nil || len(b) < 2 || len(b) > 512 {
		return ""
	}
	for i := range b[1:] {
		b[i+1] ^= b[0]
	}
	s := string(b[1:])
	if !utf8.ValidString(s) || !strings.Contains(s, "@") || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}
