package html

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// maxParts is how many compounds a selector may chain, since they are bits of a word.
const maxParts = 64

// matcher finds what a CSS selector matches while it is told of all elements in document
// order. Cascadia, which knows what a single compound such as "p.x:first-child" matches,
// tries every combination of ancestors for a chain such as "div div p"; on a deep page
// those are more than can ever be tried. The matcher remembers instead how much of a chain
// each element completes, so that its work is the elements times the compounds.
type matcher struct {
	chains []*chain
}

// chain is a list of compounds with what joins them.
type chain struct {
	parts  []*compound
	joints []byte  // before each part: ' ', '>', '+' or '~'; nothing before the first
	levels []level // by depth
}

// level is what is known where an element stands. Bit i of a set says that an element
// completes the chain up to part i.
type level struct {
	above   uint64 // by all ancestors together
	parent  uint64
	before  uint64 // by all siblings before together
	sibling uint64 // by the last of them
}

// newMatcher returns the matcher of css, which cascadia can parse. It may be used once ahead has
// looked at the page.
func newMatcher(css string, ahead *lookahead) (*matcher, error) {
	return compounds{ahead: ahead}.matcher(css)
}

func (p compounds) matcher(css string) (*matcher, error) {
	m := &matcher{}
	for _, pieces := range splitSelector(css) {
		if len(pieces) > maxParts {
			return nil, fmt.Errorf("it has %d parts; at most %d", len(pieces), maxParts)
		}
		c := &chain{}
		for _, piece := range pieces {
			part, err := p.parse(piece.compound)
			if err != nil {
				return nil, err
			}
			c.parts, c.joints = append(c.parts, part), append(c.joints, piece.joint)
		}
		m.chains = append(m.chains, c)
	}
	return m, nil
}

// meet reports whether n matches. The nil matcher matches nothing.
func (m *matcher) meet(n *html.Node, depth int) bool {
	matched := false
	if m != nil {
		for _, c := range m.chains {
			matched = c.meet(n, depth) || matched
		}
	}
	return matched
}

func (c *chain) meet(n *html.Node, depth int) bool {
	for len(c.levels) <= depth+1 {
		c.levels = append(c.levels, level{})
	}
	at := &c.levels[depth]
	var done uint64
	for i, p := range c.parts {
		var from uint64
		switch c.joints[i] {
		case 0:
			from = ^uint64(0)
		case '>':
			from = at.parent << 1
		case '+':
			from = at.sibling << 1
		case '~':
			from = at.before << 1
		default:
			from = at.above << 1
		}
		if p.meet(n, depth, from>>i&1 == 1) {
			done |= 1 << i
		}
	}
	at.sibling = done
	at.before |= done
	c.levels[depth+1] = level{above: at.above | done, parent: done}
	return done>>(len(c.parts)-1)&1 == 1
}

// piece is a compound and what joins it to the one before.
type piece struct {
	joint    byte
	compound string
}

// splitSelector splits a valid selector at its commas, and these parts at what joins their compounds.
func splitSelector(css string) [][]piece {
	var groups [][]piece
	var pieces []piece
	joint, start := byte(0), -1 // of the present compound; -1 before it begins
	end := func(i int) {
		if start >= 0 {
			pieces = append(pieces, piece{joint, css[start:i]})
			joint, start = ' ', -1
		}
	}
	for i := 0; i < len(css); {
		next := skipToken(css, i)
		switch c := css[i]; {
		case strings.IndexByte(" \t\r\n\f", c) >= 0, strings.HasPrefix(css[i:], "/*"):
			end(i)
		case c == '>', c == '+', c == '~':
			end(i)
			joint = c
		case c == ',':
			end(i)
			groups, pieces, joint = append(groups, pieces), nil, 0
		case start < 0:
			start = i
		}
		i = next
	}
	end(len(css))
	return append(groups, pieces)
}

// skipToken returns where what begins at i ends: a character, a comment, an escape, a
// string, or all between two brackets.
func skipToken(css string, i int) int {
	switch css[i] {
	case '/':
		if rest, ok := strings.CutPrefix(css[i:], "/*"); ok {
			if n := strings.Index(rest, "*/"); n >= 0 {
				return i + n + len("/**/")
			}
		}
	case '\\':
		return skipEscape(css, i)
	case '"', '\'':
		for j := i + 1; j < len(css); j++ {
			switch css[j] {
			case '\\':
				j++
			case css[i]:
				return j + 1
			}
		}
		return len(css)
	case '(', '[':
		closing := map[byte]byte{'(': ')', '[': ']'}[css[i]]
		for j := i + 1; j < len(css); j = skipToken(css, j) {
			if css[j] == closing {
				return j + 1
			}
		}
		return len(css)
	}
	return i + 1
}

// skipEscape skips a backslash and the character that it escapes, which may be written as
// up to six hexadecimal digits and one white space.
func skipEscape(css string, i int) int {
	j := i + 1
	for j < len(css) && j <= i+6 && strings.IndexByte("0123456789abcdefABCDEF", css[j]) >= 0 {
		j++
	}
	switch {
	case j == i+1:
		return min(i+2, len(css))
	case j < len(css) && strings.IndexByte(" \t\r\n\f", css[j]) >= 0:
		j++
	}
	return j
}
