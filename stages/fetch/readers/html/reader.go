// Package html reads HTML pages.
package html

import (
	"bytes"
	"context"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/xmlclean"
)

// Reader reads HTML and XHTML in UTF-8. The text is what a visitor sees without running
// scripts. A page without selectors is read token by token, whatever its nesting; one with
// selectors is parsed, which fails at a nesting of more than 512.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns the media types of HTML and XHTML.
func (Reader) ContentTypes() []string {
	return []string{"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
}

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "html/5" }

// Read returns the text of view. It returns ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	var passed blocks.Passed
	if strings.HasSuffix(raw.MediaType(), "xhtml+xml") {
		body = expandSelfClosing(xmlclean.Clean(body, &passed))
	}
	var t pipeline.Text
	var err error
	if len(view.Select)+len(view.Remove) == 0 && !isAmount(view) {
		t, err = scanPage(ctx, body)
	} else {
		t, err = walkPage(ctx, body, view)
	}
	if err != nil {
		return pipeline.Text{}, err
	}
	t.Passed = append(passed.Sentences(), t.Passed...)
	if t.Language = blocks.LanguageTag(t.Language); t.Language == "" {
		t.Language = blocks.LanguageTag(raw.ContentLanguage)
	}
	return t, nil
}

// emitter turns the elements and texts of a page, in document order, into its text. It
// holds the rules that the scanner of tokens and the walker of the tree share.
type emitter struct {
	body        blocks.Builder
	title       blocks.Builder
	hasTitle    bool // the title has begun; a page has one
	inTitle     bool
	preDepth    int
	amount      bool // the text is read as a number
	raised      bool // within <sup> or <small>
	cut         int  // the length of the text where an inline element last began or ended
	items       itemFinder
	neighbours  neighbours
	linkAddress string // the address that Cloudflare's placeholder stands for in the open link
	isSilent    bool   // text here is not shown
	wasSilent   []bool // isSilent around each open element that is silent or audible
}

// beginElement writes what the beginning of an element means for the text. It returns false where
// nothing within is visible. Then endElement must not be called.
func (e *emitter) beginElement(el *element) bool {
	if el.hidden || (el.atom == atom.Title && e.hasTitle) {
		return false
	}
	if el.kind&inlineBox != 0 {
		e.body.Space()
	}
	if el.kind&skip != 0 {
		return false
	}
	if el.kind&(silent|audible) != 0 {
		e.wasSilent = append(e.wasSilent, e.isSilent)
		e.isSilent = el.kind&silent != 0
	}
	switch {
	case el.atom == atom.Title:
		e.hasTitle, e.inTitle = true, true
	case el.email != "":
		e.body.Text([]byte(el.email))
		return false
	case el.atom == atom.Sup || el.atom == atom.Small:
		e.raised = e.amount
	case el.kind&block != 0:
		e.body.Break()
		e.items.begin(el, e.body.Len())
	}
	if el.kind&preformatted != 0 {
		e.preDepth++
	}
	if el.link != "" {
		e.linkAddress = el.link
	}
	return true
}

// endElement writes what the end of an element means, for which beginElement returned true.
func (e *emitter) endElement(a atom.Atom, k kind) {
	switch {
	case a == atom.Title:
		e.inTitle = false
	case a == atom.A:
		e.linkAddress = ""
		e.endLink()
	case a == atom.Sup || a == atom.Small:
		e.raised = false
	case k&block != 0:
		e.body.Break()
		e.items.end(k, e.body.Len())
	}
	if k&preformatted != 0 {
		e.preDepth--
	}
	if k&(silent|audible) != 0 {
		last := len(e.wasSilent) - 1
		e.isSilent, e.wasSilent = e.wasSilent[last], e.wasSilent[:last]
	}
	if k&inlineBox != 0 {
		e.body.Space()
	}
}

// addLabel writes the text of a button that is an input.
func (e *emitter) addLabel(label string) {
	if label != "" && !e.isSilent {
		e.body.Text([]byte(label))
	}
}

// noteLink notes an a element with a target.
func (e *emitter) noteLink(el *element) {
	e.endLink() // a link ends the one before it
	if el.hidden {
		return
	}
	if !e.body.InBlock() {
		e.items.beginLink(el, e.body.Len())
	}
	e.items.link(el.target, e.body.Len(), !e.body.InBlock())
}

// beginInline and endInline note the beginning and the end of an element that ends no block.
func (e *emitter) beginInline(a atom.Atom) {
	e.cut = e.body.Len()
	e.neighbours.begin(a, e.body.Len())
}

func (e *emitter) endInline(a atom.Atom) {
	e.cut = e.body.Len()
	if e.body.InBlock() {
		e.neighbours.end(a, e.body.Len())
	}
}

func (e *emitter) endLink() { e.items.endLink(e.body.Len(), e.body.InBlock()) }

func (e *emitter) addText(s []byte) {
	switch {
	case e.isSilent:
	case e.inTitle:
		e.title.Text(s)
	case e.linkAddress != "" && blocks.Line(string(s)) == emailPlaceholder:
		e.body.Text([]byte(e.linkAddress))
	case e.preDepth > 0:
		e.body.Lines(s)
	default:
		if e.neighbours.areApart(e.body.Memory(), s) {
			e.body.Space()
		}
		if e.raised {
			if mark := RaisedMark(e.body.Memory(), s); mark == " " {
				e.body.Space()
			} else {
				e.body.Text([]byte(mark))
			}
		} else if e.amount && e.cut == e.body.Len() && !e.body.IsSpaced() {
			s = SplitCents(e.body.Memory(), s)
		}
		e.body.Text(s)
	}
}

// noted matches an amount, with its currency behind it. A raised digit there is the number of a note.
var noted = regexp.MustCompile(`[0-9]\x{2063}? ?\p{Sc}$`)

// RaisedMark returns what stands between the text before and the raised text behind it, where both have digits there: a
// decimal mark before cents, which is a comma where the number has points, and a blank before other digits, also where
// a currency stands before.
func RaisedMark(before, raised []byte) string {
	const digits = "0123456789"
	raised = bytes.TrimSpace(raised)
	if noted.Match(before[max(len(before)-8, 0):]) && len(raised) == 1 && strings.Contains(digits, string(raised)) {
		return " "
	}
	if len(raised) == 0 || len(before) == 0 || !strings.Contains(digits, string(raised[0])) || !strings.Contains(digits, string(before[len(before)-1])) {
		return ""
	}
	if n := len(raised); n != 2 && n != 3 || len(bytes.Trim(raised, digits)) > 0 {
		return " "
	}
	return DecimalMark(before)
}

// DecimalMark returns the decimal mark for the number at the end of before: a comma where it has points, else a point.
func DecimalMark(before []byte) string {
	number := before[len(bytes.TrimRight(before, "0123456789.,' ")):]
	if bytes.IndexByte(number, '.') >= 0 && bytes.IndexByte(number, ',') < 0 {
		return ","
	}
	return "."
}

// Split stands in the text for an amount between digits and two more in another element, which may be cents. It stands
// behind those as well if their element holds nothing else.
const Split = "\u2063"

// SplitCents returns text, which another element holds than the text before it, with Split where the two digits at its
// beginning may be the cents of the number before.
func SplitCents(before, text []byte) []byte {
	const digits = "0123456789"
	whole := bytes.TrimRight(before, digits)
	if n := len(text) - len(bytes.TrimLeft(text, digits)); n != 2 || len(whole) == len(before) {
		return text
	}
	if rest := text[2:]; len(rest) > 1 && strings.IndexByte(".,':", rest[0]) >= 0 && strings.IndexByte(digits, rest[1]) >= 0 {
		return text // the number goes on
	}
	if n := len(whole); n > 1 && strings.IndexByte(".,", whole[n-1]) >= 0 && len(before)-n != 3 {
		return text // "1.9" has decimals, and "1.299" has none
	}
	if len(text) == 2 {
		return []byte(Split + string(text) + Split)
	}
	return append([]byte(Split), text...)
}

// isAmount reports whether the text of view is read as a number.
func isAmount(view pipeline.View) bool {
	return view.Value != nil && view.Value.Offer == "" && !view.Value.Text()
}

// isFull reports whether the text is larger than any may be.
func (e *emitter) isFull() bool { return e.body.Len()+e.title.Len() > pipeline.MaxText }

// result returns the text. withTitle makes the title its first block.
func (e *emitter) result(withTitle bool) pipeline.Text {
	title := e.title.Content()
	t := pipeline.Text{Title: strings.TrimSuffix(title, "\n")}
	if !withTitle {
		title = ""
	}
	e.body.Break()
	t.Content, t.Keys = e.items.mark(title, e.body.Memory())
	return t
}

// expandSelfClosing writes <x/> as <x></x>, which in XHTML mean the same and in HTML do
// not. A body that cannot be read to its end is returned as it is.
func expandSelfClosing(body []byte) []byte {
	if !bytes.Contains(body, []byte("/>")) {
		return body
	}
	out := make([]byte, 0, len(body)+len(body)/8)
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	done := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return append(out, body[done:]...)
		case html.SelfClosingTagToken:
			raw := z.Raw()
			out = append(out, raw...)
			done += len(raw)
			if name, _ := z.TagName(); elementKinds[atom.Lookup(name)]&(void|foreign) == 0 {
				out = append(append(append(out[:len(out)-2], "></"...), name...), '>')
				z.NextIsNotRawText()
			}
		default:
			raw := z.Raw()
			out = append(out, raw...)
			done += len(raw)
		}
	}
}
