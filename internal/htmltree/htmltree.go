// Package htmltree parses HTML that strangers wrote.
package htmltree

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxNodes is how large a parsed page may become, in nodes of some 170 bytes.
	maxNodes = 1 << 20
	// attrsPerNode is how many attributes take as much as a node.
	attrsPerNode = 4
	// maxAttrs is how many attributes an element may have.
	maxAttrs = 10_000
	// maxToken is the largest single tag, text or script, in bytes.
	maxToken = 16 << 20
	// tokensPerCheck is how many tokens are read between two looks at the context.
	tokensPerCheck = 4096
)

// ErrTooLarge says that the tree of a page would be out of all proportion to its size.
var ErrTooLarge = errors.New("the page has too many elements")

// Parse returns the tree of an HTML page, and how the page ends. Its errors are ErrTooLarge, that of ctx, and that
// of html.Parse, which refuses more than 512 elements within each other.
func Parse(ctx context.Context, body []byte) (*html.Node, Ending, error) {
	ending, err := checkNodeCount(ctx, body)
	if err != nil {
		return nil, ending, err
	}
	root, err := html.Parse(bytes.NewReader(body))
	return root, ending, err
}

// Attribute returns the value of an attribute of n, and whether n has it.
func Attribute(n *html.Node, name string) (value string, ok bool) {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// formattingElements are the elements that the parser opens anew in every paragraph until they
// are closed.
var formattingElements = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// Ending is what a page ends within, if that hides text: "a comment", "a tag" or "<script>". It is empty elsewhere.
type Ending string

// Note sees the next token of the page, whose source is raw. Open is the innermost element that is open before it.
func (e *Ending) Note(token html.TokenType, raw []byte, open atom.Atom) {
	switch token {
	case html.ErrorToken:
		if len(raw) > 0 {
			*e = "a tag"
		}
	case html.CommentToken:
		if bytes.HasPrefix(raw, []byte("<!--")) && !bytes.HasSuffix(raw, []byte(">")) {
			*e = "a comment"
		}
	case html.TextToken:
		switch open {
		case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea:
			if len(bytes.TrimSpace(raw)) > 0 {
				*e = Ending("<" + open.String() + ">")
			}
		}
	case html.EndTagToken:
		*e = ""
	}
}
