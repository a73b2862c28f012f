// Package oracle says, by brute force over whole texts, what a notification about
// two versions of a document must and may contain. It is written from the documented
// behaviour alone and imports nothing of this module, not even its tokens, so that a
// mistake in the stages is not repeated here.
//
// It reads only texts for which there is no doubt what a token is: words of letters
// and digits with white space and plain punctuation between them.
package oracle

// Block is a paragraph, heading, cell, list item or line.
type Block struct {
	// Text is the block's text, without any mark.
	Text string
	// Offset is where Text begins in the version's text, in bytes.
	Offset int
	// Items names the items that hold the block, outermost first; blocks of one item follow each other.
	Items []int
	// Keys are those of Items. It is nil where none has one.
	Keys []Key
}

// Key is what an item of a list is known by. The zero Key is none.
type Key struct{ List, ID uint32 }

// Page is one version of a document.
type Page []Block

// Subscription is what a client wants to hear, with all defaults filled in.
type Subscription struct {
	// Keywords is empty where every change is reported.
	Keywords         []string
	Added, Removed   bool
	MatchCase        bool
	IgnoreDiacritics bool
	Stem             bool
	FilterStopwords  bool
	// Terms says that all words of a keyword match in any order, instead of the phrase.
	Terms bool
	Moved bool
	// NearBlock and NearRow also report what changes beside a keyword that stays: in its block, or in its unit.
	NearBlock, NearRow bool
	Min                MinChange
}

// Language is what is known about a language; nil is no language.
type Language struct {
	// Stop holds the words of no significance, in lower case.
	Stop map[string]bool
	// Stem returns the stem of a word in lower case.
	Stem func(string) string
}

// Report is one diff of a notification.
type Report struct {
	Event   string // added or removed
	Keyword string
	Text    string
	Snippet string
	// Offset is where Text begins in the text of its version, in bytes.
	Offset int
	// Edit numbers the edits of a notification of every change from 1. It is 0 for keywords.
	Edit int
	// Item is new, gone or changed where Text is in an item that is. Title is the beginning of its first block.
	Item, Title string
}

// The events.
const (
	Added   = "added"
	Removed = "removed"
)

// side is one of the two versions.
type side int

const (
	oldSide side = iota
	newSide
)

func (s side) other() side { return 1 - s }

func (s side) event() string {
	if s == oldSide {
		return Removed
	}
	return Added
}
