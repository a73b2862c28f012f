package selector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// maxCompounds is how many compounds a selector may chain, since they are bits of a word.
const maxCompounds = 64

// cssMatcher finds what a CSS selector matches while it visits all elements in document
// order. Cascadia, which knows what a single compound such as "p.x:first-child" matches,
// tries every combination of ancestors for a chain such as "div div p"; on a deep page
// those are more than can ever be tried. The matcher remembers instead how much of a chain
// each element completes, so that its work is the elements times the compounds.
type cssMatcher struct {
	chains []*compoundChain
}

// compoundChain is a list of compounds with what joins them.
type compoundChain struct {
	compounds   []*compound
	combinators []byte       // before each part: ' ', '>', '+' or '~'; nothing before the first
	states      []chainState // by depth
}

// chainState is what is known where an element stands. Bit i of a set says that an element
// completes the chain up to part i.
type chainState struct {
	ancestors       uint64 // by all ancestors together
	parent          uint64
	earlierSiblings uint64 // by all siblings before together
	previousSibling uint64 // by the last of them
}

// parseMatcher reads css, a list of selectors that cascadia can parse. The matcher may be used once p.ahead has looked
// at the page.
func (p compoundParser) parseMatcher(css string) (*cssMatcher, error) {
	m := &cssMatcher{}
	for _, pieces := range splitSelector(css) {
		if len(pieces) > maxCompounds {
			return nil, fmt.Errorf("it has %d parts; at most %d", len(pieces), maxCompounds)
		}
		c := &compoundChain{}
		for _, piece := range pieces {
			part, err := p.parseCompound(piece.compound)
			if err != nil {
				return nil, err
			}
			c.compounds, c.combinators = append(c.compounds, part), append(c.combinators, piece.combinator)
		}
		m.chains = append(m.chains, c)
	}
	return m, nil
}

// visit reports whether n, an element at depth, matches. The elements come in document order. The
// nil matcher matches nothing.
func (m *cssMatcher) visit(n *html.Node, depth int) bool {
	matched := false
	if m != nil {
		for _, c := range m.chains {
			matched = c.visit(n, depth) || matched
		}
	}
	return matched
}

// visit reports whether n completes the chain, and notes which parts of it n completes.
func (c *compoundChain) visit(n *html.Node, depth int) bool {
	for len(c.states) <= depth+1 {
		c.states = append(c.states, chainState{})
	}
	at := &c.states[depth]
	var done uint64
	for i, p := range c.compounds {
		var from uint64
		switch c.combinators[i] {
		case 0:
			from = ^uint64(0)
		case '>':
			from = at.parent << 1
		case '+':
			from = at.previousSibling << 1
		case '~':
			from = at.earlierSiblings << 1
		default:
			from = at.ancestors << 1
		}
		if p.visit(n, depth, from>>i&1 == 1) {
			done |= 1 << i
		}
	}
	at.previousSibling = done
	at.earlierSiblings |= done
	c.states[depth+1] = chainState{ancestors: at.ancestors | done, parent: done}
	return done>>(len(c.compounds)-1)&1 == 1
}

// cssPiece is a compound and the combinator that joins it to the one before.
type cssPiece struct {
	combinator byte
	compound   string
}

// splitSelector splits a valid selector at its commas, and these parts at what joins their compounds.
func splitSelector(css string) [][]cssPiece {
	var groups [][]cssPiece
	var pieces []cssPiece
	joint, start := byte(0), -1 // of the present compound; -1 before it begins
	end := func(i int) {
		if start >= 0 {
			pieces = append(pieces, cssPiece{joint, css[start:i]})
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
// up to six hexadecimal digits and one white space, which a carriage return and a line feed are together.
func skipEscape(css string, i int) int {
	j := i + 1
	for j < len(css) && j <= i+6 && strings.IndexByte("0123456789abcdefABCDEF", css[j]) >= 0 {
		j++
	}
	switch {
	case j == i+1:
		return min(i+2, len(css))
	case strings.HasPrefix(css[j:], "\r\n"):
		j += 2
	case j < len(css) && strings.IndexByte(" \t\r\n\f", css[j]) >= 0:
		j++
	}
	return j
}

// compound is what a chain joins, such as "p.x:not(.y):has(b)". Cascadia tries :not and :has on
// one element at a time and without a limit; here they are matchers of their own. It counts the siblings
// of each element; here they are counted once.
type compound struct {
	plain         cascadia.Matcher // the rest; nil matches every element
	not           []*cssMatcher
	nthConditions []*nthCondition
	hasTests      uint64 // the tests of ahead that must hold
	ahead         *lookahead
}

// visit reports whether n matches. It visits all elements in document order. wanted says whether
// the answer matters.
func (c *compound) visit(n *html.Node, depth int, wanted bool) bool {
	for _, m := range c.not {
		wanted = !m.visit(n, depth) && wanted
	}
	if !wanted || c.hasTests&^c.ahead.passed[n] != 0 || c.plain != nil && !c.plain.Match(n) {
		return false
	}
	for _, p := range c.nthConditions {
		if !p.matches(n) {
			return false
		}
	}
	return true
}

// compoundParser parses compounds.
type compoundParser struct {
	ahead *lookahead
	inHas bool // of the argument of a :has
}

// parseCompound reads css, which is valid.
func (p compoundParser) parseCompound(css string) (*compound, error) {
	c := &compound{ahead: p.ahead}
	var plain strings.Builder
	for i := 0; i < len(css); {
		next := skipToken(css, i)
		switch css[i] {
		case '[':
			if comparesByRegexp(css[i:next]) {
				return nil, errors.New("[name#=...] is not CSS and not supported")
			}
		case ':':
			end := nameEnd(css, next)
			name := strings.ToLower(css[next:end])
			switch {
			case strings.Contains(name, `\`):
				return nil, errors.New("a pseudo-class has an escape in its name; write it plainly")
			case name == "matches" || name == "matchesown":
				return nil, fmt.Errorf(":%s is not CSS and not supported", name)
			case name == "not" || name == "has" || name == "haschild":
				next = skipToken(css, end)
				if err := p.parseRelative(c, name, css[end+1:next-1]); err != nil {
					return nil, err
				}
				i = next
				continue
			}
			argument := ""
			if end < len(css) && css[end] == '(' {
				closing := skipToken(css, end)
				argument = css[end+1 : closing-1]
				next = closing
			} else {
				next = end
			}
			place, err := newNthCondition(name, argument, &p.ahead.siblings)
			if err != nil {
				return nil, err
			}
			if place != nil {
				c.nthConditions = append(c.nthConditions, place)
				i = next
				continue
			}
		}
		plain.WriteString(css[i:next])
		i = next
	}
	if plain.Len() == 0 {
		return c, nil
	}
	// The space is there since cascadia takes "*|*" only where something follows.
	sel, err := cascadia.Parse(plain.String() + " ")
	c.plain = sel
	return c, err
}

// parseRelative adds the pseudo-class name with its argument to c.
func (p compoundParser) parseRelative(c *compound, name, argument string) error {
	if name == "not" {
		m, err := p.parseMatcher(argument)
		c.not = append(c.not, m)
		return err
	}
	if p.inHas {
		return errors.New(":has within :has is not supported; name what is within the innermost alone, or select by a class")
	}
	p.inHas = true
	m, err := p.parseMatcher(argument)
	if err != nil {
		return err
	}
	bit, err := p.ahead.add(m, name == "haschild")
	c.hasTests |= bit
	return err
}

// comparesByRegexp reports whether the attribute selector s has cascadia's operator #=.
func comparesByRegexp(s string) bool {
	for i := 1; i < len(s); i = skipToken(s, i) {
		if s[i] == '=' {
			return s[i-1] == '#'
		}
	}
	return false
}

// nameEnd returns where the name that begins at i ends.
func nameEnd(css string, i int) int {
	for i < len(css) {
		switch c := css[i]; {
		case c == '\\':
			i = skipEscape(css, i)
		case c == '-', c == '_', c > 127, '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			i++
		default:
			return i
		}
	}
	return i
}
