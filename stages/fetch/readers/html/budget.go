package html

import (
	"bytes"
	"context"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNodes is how large a parsed page may become, in nodes of some 170 bytes.
const maxNodes = 1 << 20

// formatting are the elements that the parser opens anew in every paragraph until they
// are closed.
var formatting = atoms(atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small,
	atom.Strike, atom.Strong, atom.Tt, atom.U)

// affordable refuses a page whose tree would be out of all proportion to its size, before
// it is parsed. It counts from above: every open formatting element at every token, but of
// equal ones without attributes at most three, as the parser does.
func affordable(ctx context.Context, body []byte) error {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	open := map[atom.Atom]int{}
	plain := map[atom.Atom]int{}
	active, nodes := 0, 0
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if nodes > maxNodes {
			return tooLarge("the page has too many elements for selectors")
		}
		switch z.Next() {
		case html.ErrorToken:
			return nil
		case html.TextToken:
			nodes += 1 + active
		case html.StartTagToken, html.SelfClosingTagToken:
			nodes += 1 + active
			name, attrs := z.TagName()
			a := atom.Lookup(name)
			if !formatting[a] {
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
			name, _ := z.TagName()
			if a := atom.Lookup(name); open[a] > 0 {
				open[a]--
				active--
				plain[a] = max(plain[a]-1, 0)
			}
		}
	}
}
