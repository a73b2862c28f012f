package html

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// kind says what an element means for the text and for the elements around it.
type kind uint32

const (
	block         kind = 1 << iota // ends the block before it and its own
	item                           // a list item or table row
	preformatted                   // its lines are blocks
	skip                           // has no visible text
	void                           // has no content
	special                        // not closed by the end tag of an inline element around it
	scopeBoundary                  // what is within is not closed by end tags that belong outside
	closesP                        // its start tag ends an open paragraph
	rawText                        // the tokenizer takes its content for text
	cell                           // td, th
	tablePart                      // table, tbody, thead, tfoot: what rows stand in
	heading
	inSVG       // svg and what is within
	inMath      // math and what is within
	silent      // text directly within is not shown, unless it is within
	audible     // an element whose text is shown
	integration // a place for HTML in SVG or MathML
	inlineBox   // stands in a line as a box of its own: words beside it are words of their own
)

const (
	blockP  = block | special | closesP
	foreign = inSVG | inMath
)

// elementKinds are the kinds of the elements that matter. Every other element is inline.
var elementKinds = map[atom.Atom]kind{
	atom.Script: skip | special | rawText, atom.Style: skip | special | rawText, atom.Noscript: skip | special | rawText,
	atom.Iframe: skip | special | rawText | inlineBox, atom.Noembed: skip | special | rawText, atom.Noframes: skip | special | rawText,
	atom.Textarea: skip | special | rawText | inlineBox, atom.Template: skip | special | scopeBoundary,
	atom.Object: skip | special | scopeBoundary | inlineBox, atom.Canvas: skip | inlineBox,
	atom.Svg: inSVG | silent | inlineBox, atom.Math: inMath | inlineBox,
	atom.Title: special | rawText,

	atom.Area: void, atom.Base: void, atom.Basefont: void, atom.Bgsound: void, atom.Br: void | block, atom.Col: void,
	atom.Embed: void | inlineBox, atom.Frame: void, atom.Hr: void | block | closesP, atom.Image: void | inlineBox, atom.Img: void | inlineBox, atom.Input: void | inlineBox,
	atom.Keygen: void, atom.Link: void, atom.Meta: void, atom.Param: void, atom.Source: void, atom.Track: void, atom.Wbr: void,

	atom.Address: blockP, atom.Article: blockP, atom.Aside: blockP, atom.Blockquote: blockP, atom.Center: blockP,
	atom.Details: blockP, atom.Dialog: blockP, atom.Dir: blockP, atom.Div: blockP, atom.Dl: blockP,
	atom.Fieldset: blockP, atom.Figcaption: blockP, atom.Figure: blockP, atom.Footer: blockP, atom.Form: blockP,
	atom.Header: blockP, atom.Hgroup: blockP, atom.Main: blockP, atom.Menu: blockP,
	atom.Nav: blockP, atom.Ol: blockP, atom.P: blockP, atom.Section: blockP, atom.Summary: blockP, atom.Ul: blockP,
	atom.H1: blockP | heading, atom.H2: blockP | heading, atom.H3: blockP | heading,
	atom.H4: blockP | heading, atom.H5: blockP | heading, atom.H6: blockP | heading,
	atom.Pre: blockP | preformatted, atom.Listing: blockP | preformatted, atom.Xmp: blockP | preformatted | rawText, atom.Plaintext: blockP | preformatted | rawText,
	atom.Li: blockP | item, atom.Dd: blockP | item, atom.Dt: blockP | item,
	atom.Legend: block, atom.Option: block, atom.Optgroup: block, atom.Search: blockP,

	atom.Table: blockP | scopeBoundary | tablePart, atom.Caption: block | special | scopeBoundary, atom.Colgroup: block | special,
	atom.Tbody: block | special | tablePart, atom.Thead: block | special | tablePart, atom.Tfoot: block | special | tablePart,
	atom.Tr: block | special | item, atom.Td: block | special | scopeBoundary | cell, atom.Th: block | special | scopeBoundary | cell,

	atom.Button: special | inlineBox, atom.Select: special | block, atom.Marquee: special | scopeBoundary, atom.Applet: special | scopeBoundary,
	atom.Audio: inlineBox, atom.Video: inlineBox, atom.Meter: inlineBox, atom.Progress: inlineBox,
}

// svgKinds are the kinds of the elements of SVG whose text, or the text of what is within, is shown where they stand.
// All others have none.
var svgKinds = map[string]kind{
	"svg": silent | inlineBox, "g": 0, "a": 0, "switch": 0,
	"text": audible | inlineBox, "tspan": audible | inlineBox, "textpath": audible | inlineBox,
	"foreignobject": audible | inlineBox | special | scopeBoundary | integration,
	"desc":          skip | special | scopeBoundary | integration, "title": skip | special | scopeBoundary | integration,
}

// mathKinds are the kinds of the elements of MathML that matter. The text of all others is shown.
var mathKinds = map[string]kind{
	"math": inlineBox, "annotation": skip, "annotation-xml": skip | special | scopeBoundary, "mphantom": skip,
	"mi": mathText, "mo": mathText, "mn": mathText, "ms": mathText, "mtext": mathText,
}

const mathText = inlineBox | special | scopeBoundary | integration

// foreignKind returns the kind of the element of this name, in lower case, in SVG or MathML.
func foreignKind(within kind, name string) kind {
	if within&inMath != 0 {
		return mathKinds[name] | inMath
	}
	k, ok := svgKinds[name]
	if !ok {
		k = skip
	}
	return k | inSVG
}

// IsSkipped reports whether the element of this name, in lower case, has no visible text.
func IsSkipped(name string) bool { return elementKinds[atom.Lookup([]byte(name))]&skip != 0 }

// element is what the text rules know of an element.
type element struct {
	atom     atom.Atom
	kind     kind
	hidden   bool   // by an attribute
	isButton bool   // an input whose value is shown
	email    string // the scrambled address that it stands for
	link     string // the scrambled address that it links to
	lang     string // of the html element
	value    string // of an input
	// The hashes of its attributes: see itemFinder.
	target  uint32 // of an a element
	classes [maxClasses]uint32
	id      uint32
	dataID  uint32
}

// wants reports whether the attribute a matters for the element.
func (el *element) wants(a attribute) bool {
	switch a {
	case attrType, attrValue:
		return el.atom == atom.Input
	case attrShadow:
		return el.atom == atom.Template
	case attrDisplay, attrVisibility:
		return el.kind&foreign != 0
	case attrEncoding:
		return el.kind&inMath != 0 && el.atom == atom.AnnotationXml
	}
	return a != 0
}

// look returns what the lists in el have in common: its name and first class.
func (el *element) look() uint32 { return mix(uint32(el.atom), el.classes[0]) }

// looks returns the looks of el by each of its classes, or by its name alone.
func (el *element) looks() (looks [maxClasses]uint32) {
	looks[0] = max(el.look(), 1)
	for i, c := range el.classes[1:] {
		if c != 0 {
			looks[i+1] = max(mix(uint32(el.atom), c), 1)
		}
	}
	return looks
}

// setAttribute sets what the attribute a, which the element wants, says of it.
func setAttribute[T text](el *element, a attribute, value T) {
	switch a {
	case attrClass:
		if el.kind&block != 0 || el.atom == atom.A {
			el.classes = hashClasses(value)
		}
	case attrID:
		if el.kind&block != 0 {
			el.id = hashText(value)
		}
	case attrDataID:
		if el.kind&block != 0 {
			el.dataID = hashText(value)
		}
	case attrHref:
		if el.atom == atom.A {
			el.target = hashTarget(value)
			if _, code, ok := strings.Cut(string(value), emailPath); ok {
				el.link = unscramble(code)
			}
		}
	default:
		el.setText(a, string(value))
	}
}

// setText is setAttribute for attributes that are no hashes.
func (el *element) setText(a attribute, value string) {
	switch a {
	case attrHidden:
		el.hide()
	case attrStyle:
		if hidesElement(value) {
			el.hide()
		}
	case attrDisplay:
		el.hidden = el.hidden || strings.TrimSpace(value) == "none"
	case attrVisibility:
		el.hidden = el.hidden || strings.TrimSpace(value) == "hidden"
	case attrEmail:
		if el.kind == 0 {
			el.email = unscramble(value)
		}
	case attrLang:
		if el.atom == atom.Html {
			el.lang = value
		}
	case attrShadow: // a browser shows it in place without any script
		if strings.EqualFold(value, "open") || strings.EqualFold(value, "closed") {
			el.kind &^= skip
		}
	case attrType:
		el.isButton = strings.EqualFold(value, "submit") || strings.EqualFold(value, "button") || strings.EqualFold(value, "reset")
	case attrValue:
		el.value = value
	case attrEncoding:
		if strings.EqualFold(value, "text/html") || strings.EqualFold(value, "application/xhtml+xml") {
			el.kind |= integration
		}
	}
}

// label returns the text of an input that is a button.
func (el *element) label() string {
	if el.isButton {
		return el.value
	}
	return ""
}

// hide hides the element. Pages hide themselves as a whole until a script has run, so the
// outermost elements stay visible.
func (el *element) hide() {
	if el.atom != atom.Html && el.atom != atom.Body && el.atom != atom.Head {
		el.hidden = true
	}
}

// attribute is a set of the attributes that matter.
type attribute uint16

const (
	attrHidden attribute = 1 << iota
	attrStyle
	attrEmail
	attrHref
	attrLang
	attrShadow
	attrType
	attrValue
	attrDisplay
	attrVisibility
	attrEncoding
	attrClass
	attrID
	attrDataID
)

// attributeOf returns the attribute with the name key, or 0 if it does not matter.
func attributeOf[T string | []byte](key T) attribute {
	switch string(key) {
	case "hidden":
		return attrHidden
	case "style":
		return attrStyle
	case "data-cfemail":
		return attrEmail
	case "href":
		return attrHref
	case "class":
		return attrClass
	case "id":
		return attrID
	case "data-id", "data-item-id", "data-key":
		return attrDataID
	case "lang", "xml:lang":
		return attrLang
	case "shadowrootmode":
		return attrShadow
	case "type":
		return attrType
	case "value":
		return attrValue
	case "display":
		return attrDisplay
	case "visibility":
		return attrVisibility
	case "encoding":
		return attrEncoding
	}
	return 0
}

// hidesElement reports whether a style attribute hides its element. The last declaration of
// a property counts.
func hidesElement(style string) bool {
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
	emailPath        = "/cdn-cgi/l/email-protection#"
	emailPlaceholder = "[email protected]"
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
