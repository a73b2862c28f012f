package html

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// neighbours finds where an inline element begins directly behind the end of another one, as in
// <a>Payments</a><a>Bergen</a>. Style sheets, which no reader knows, mostly set such elements apart. Each place is the
// length of the text there, 0 where there is none.
type neighbours struct {
	ended, linkEnded int // where the last element, and the last link, ended
	begun, linkBegun int // where an element begins behind another one, and a link behind a link
}

// end notes the end of an inline element at a place within a block.
func (n *neighbours) end(a atom.Atom, at int) {
	n.ended = at
	if a == atom.A {
		n.linkEnded = at
	}
}

// begin notes the beginning of an inline element. What is raised or lowered belongs to the word before.
func (n *neighbours) begin(a atom.Atom, at int) {
	if n.ended != at || a == atom.Sub || a == atom.Sup {
		return
	}
	n.begun = at
	if a == atom.A && n.linkEnded == at {
		n.linkBegun = at
	}
}

// areApart reports whether the text before and the text behind, which begins in another element, are words of their
// own. Those of two links are. Others are where the second one begins with a capital or is a number behind a word: not
// the letters of one word, as in <b>H</b><i>ello</i>, nor a number and its unit, as in 5k.
func (n *neighbours) areApart(before, behind []byte) bool {
	if len(before) == 0 || n.begun != len(before) {
		return false
	}
	if n.linkBegun == len(before) {
		return true
	}
	last, size := utf8.DecodeLastRune(before)
	previous, _ := utf8.DecodeLastRune(before[:len(before)-size])
	first, size := utf8.DecodeRune(behind)
	next, _ := utf8.DecodeRune(behind[size:])
	switch {
	case unicode.IsUpper(first) && unicode.IsLetter(next):
		return unicode.IsDigit(last) || unicode.IsLetter(last) && unicode.IsLetter(previous) && (!unicode.IsUpper(last) || !unicode.IsUpper(next))
	case unicode.IsDigit(first):
		return unicode.IsLetter(last) && unicode.IsLetter(previous)
	}
	return false
}
