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

// formattingElements are the elements that the parser opens anew in every paragraph until they
// are closed.
var formattingElements = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// checkNodeCount finds out how a page ends, and refuses one that would become larger than maxNodes, before it is
// parsed. It counts from above: every open formatting element at every token, but of equal ones without attributes
// at most three, as the parser does.
func checkNodeCount(ctx context.Context, body []byte) (ending Ending, err error) {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	open := map[atom.Atom]int{}
	plain := map[atom.Atom]int{}
	active, nodes := 0, 0
	started := atom.Atom(0) // by the last tag
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ending, ctx.Err()
		}
		if nodes > maxNodes {
			return ending, ErrTooLarge
		}
		token := z.Next()
		ending.Note(token, z.Raw(), started)
		switch token {
		case html.ErrorToken:
			return ending, nil
		case html.TextToken:
			nodes += 1 + active
		case html.StartTagToken, html.SelfClosingTagToken:
			nodes += 1 + active
			name, attrs := z.TagName()
			a := atom.Lookup(name)
			started = a
			if !formattingElements[a] {
				continue
			}
			if !attrs {
				if plain[a] >= 3 {
					continue
				}
				plain[a]++
			}
			open[a]++
			active++
		case html.EndTagToken:
			started = 0
			name, _ := z.TagName()
			if a := atom.Lookup(name); open[a] > 0 {
				open[a]--
				active--
				plain[a] = max(plain[a]-1, 0)
			}
		}
	}
}
