package html

import (
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// emitter turns the elements and texts of a page, in document order, into its text. It
// holds the rules that the scanner of tokens and the walker of the tree share.
type emitter struct {
	body    blocks.Builder
	title   blocks.Builder
	titled  bool // the title has begun; a page has one
	inTitle bool
	pre     int
	link    string // the address that Cloudflare's placeholder stands for in the open link
}

// start tells of an element's beginning. It returns false where nothing within is
// visible; then there is no end to tell of.
func (e *emitter) start(el element) bool {
	if el.kind&skip != 0 || el.hidden || (el.atom == atom.Title && e.titled) {
		return false
	}
	switch {
	case el.atom == atom.Title:
		e.titled, e.inTitle = true, true
	case el.email != "":
		e.body.Text([]byte(el.email))
		return false
	case el.kind&item != 0:
		e.body.ItemStart()
	case el.kind&block != 0:
		e.body.Break()
	}
	if el.kind&pre != 0 {
		e.pre++
	}
	if el.link != "" {
		e.link = el.link
	}
	return true
}

// end tells of the end of an element that start returned true for.
func (e *emitter) end(a atom.Atom, k kind) {
	switch {
	case a == atom.Title:
		e.inTitle = false
	case a == atom.A:
		e.link = ""
	case k&item != 0:
		e.body.ItemEnd()
	case k&block != 0:
		e.body.Break()
	}
	if k&pre != 0 {
		e.pre--
	}
}

func (e *emitter) text(s []byte) {
	switch {
	case e.inTitle:
		e.title.Text(s)
	case e.link != "" && blocks.Line(string(s)) == placeholder:
		e.body.Text([]byte(e.link))
	case e.pre > 0:
		e.body.Lines(s)
	default:
		e.body.Text(s)
	}
}

// full reports whether the text is larger than any may be.
func (e *emitter) full() bool { return e.body.Len()+e.title.Len() > pipeline.MaxText }

// result returns the text. withTitle makes the title its first block.
func (e *emitter) result(withTitle bool) pipeline.Text {
	title := e.title.Content()
	content := e.body.Content()
	if withTitle {
		content = title + content
	}
	return pipeline.Text{Content: content, Title: strings.TrimSuffix(title, "\n")}
}
