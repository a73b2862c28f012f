package htmltree

import (
	"bytes"
	"context"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Elements behind which an end tag does not end a formatting element that was opened before them.
var walls = map[atom.Atom]bool{
	atom.Applet: true, atom.Marquee: true, atom.Object: true, atom.Template: true, atom.Table: true, atom.Select: true,
	atom.Svg: true, atom.Math: true,
}

// foreignWalls are those within which the parser reads tags where the tokenizer alone sees text, and the other way
// round.
var foreignWalls = map[atom.Atom]bool{atom.Select: true, atom.Svg: true, atom.Math: true}

// htmlWithin are the elements of SVG and MathML that hold HTML.
var htmlWithin = map[string]bool{
	"foreignobject": true, "desc": true, "annotation-xml": true, "mi": true, "mo": true, "mn": true, "ms": true, "mtext": true,
}

// counter counts the nodes of a tree from above, from the tokens of its page.
type counter struct {
	nodes  int
	active int // the size of all formatting elements that are open
	open   []opened
	plain  map[atom.Atom]int // how many without attributes are open
	within string            // the element of htmlWithin that is open
	names  TagNames
}

// opened is a formatting element that is open, or a wall.
type opened struct {
	name atom.Atom
	size int  // 0 for a wall
	torn bool // a wall of which the end cannot be told from the tokens
}

// checkNodeCount finds out how a page ends, and refuses one that would become larger than maxNodes, before it is
// parsed. It counts from above: every open formatting element with its attributes at every token, but of equal ones
// without attributes at most three, as the parser does.
func checkNodeCount(ctx context.Context, body []byte) (ending Ending, err error) {
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	c := counter{plain: make(map[atom.Atom]int)}
	started := atom.Atom(0) // by the last tag
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ending, ctx.Err()
		}
		if c.nodes > maxNodes {
			return ending, ErrTooLarge
		}
		token := z.Next()
		ending.Note(token, z.Raw(), started)
		switch token {
		case html.ErrorToken:
			return ending, nil
		case html.TextToken:
			c.nodes += 1 + c.active
			if w := c.wall(); w != nil && foreignWalls[w.name] && bytes.IndexByte(z.Raw(), '<') >= 0 {
				c.hidden(z.Raw(), w)
			}
		case html.CommentToken:
			if w := c.wall(); w != nil && bytes.HasPrefix(z.Raw(), []byte("<![CDATA[")) {
				w.torn = true
			}
		case html.StartTagToken:
			started = c.start(z, false)
		case html.SelfClosingTagToken:
			started = c.start(z, true)
		case html.EndTagToken:
			started = 0
			c.end(c.names.Of(z))
		}
	}
}

// wall returns the last wall, or nil.
func (c *counter) wall() *opened {
	for i := len(c.open) - 1; i >= 0; i-- {
		if c.open[i].size == 0 {
			return &c.open[i]
		}
	}
	return nil
}

// countAttributes returns how many attributes the tag has that z has read, or more.
func countAttributes(z *html.Tokenizer) (n int) {
	attributes := AttributesOf(z)
	for more := true; more; {
		var name []byte
		if name, _, more = attributes.Next(); len(name) > 0 {
			n++
		}
	}
	return n
}

// start counts a start tag, and returns its name. Only elements of SVG and MathML close themselves.
func (c *counter) start(z *html.Tokenizer, closed bool) atom.Atom {
	name, attrs := c.names.Of(z), countAttributes(z)
	if c.within != "" {
		if w := c.wall(); w != nil {
			w.torn = true
		}
	}
	a := atom.Lookup(name)
	if htmlWithin[string(name)] && !closed {
		c.within = string(name)
	}
	size := 1 + attrs/attrsPerNode
	if c.nodes += size + c.active; attrs > maxAttrs {
		c.nodes += maxNodes
	}
	switch {
	case (a == atom.Svg || a == atom.Math) && closed:
		return a
	case walls[a]:
		c.open = append(c.open, opened{name: a})
		return a
	case !formattingElements[a]:
		return a
	case attrs == 0 && c.plain[a] >= 3:
		return a
	case attrs == 0:
		c.plain[a]++
	}
	c.open = append(c.open, opened{name: a, size: size})
	c.active += size
	return a
}

func (c *counter) end(name []byte) {
	if string(name) == c.within {
		c.within = ""
	}
	a := atom.Lookup(name)
	if !walls[a] && !formattingElements[a] {
		return
	}
	for i := len(c.open) - 1; i >= 0; i-- {
		o := c.open[i]
		if o.name == a && !o.torn {
			c.open = append(c.open[:i], c.open[i+1:]...)
			if c.active -= o.size; o.size > 0 {
				c.plain[a] = max(c.plain[a]-1, 0)
			}
			return
		}
		if o.size == 0 {
			return
		}
	}
}

// hidden counts the formatting elements in a text behind the wall w that the parser may read as tags. They stay open.
func (c *counter) hidden(text []byte, w *opened) {
	w.torn = true
	z := html.NewTokenizer(bytes.NewReader(text))
	z.SetMaxBuf(maxToken)
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		if tt != html.StartTagToken && tt != html.SelfClosingTagToken {
			continue
		}
		name, size := c.names.Of(z), 1+countAttributes(z)/attrsPerNode
		z.NextIsNotRawText()
		c.nodes += size + c.active
		if formattingElements[atom.Lookup(name)] {
			c.active += size
		}
	}
}
