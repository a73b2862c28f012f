package selector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/andybalholm/cascadia"
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

// compound is what a chain joins, such as "p.x:not(.y):has(b)". Cascadia tries :not and :has on
// one element at a time and without a limit; here they are matchers of their own. It counts the siblings
// of each element; here they are counted once.
type compound struct {
	plain cascadia.Matcher // the rest; nil matches every element
	not   []*matcher
	nth   []*nth
	has   uint64 // the tests of ahead that must hold
	ahead *lookahead
}

// meet reports whether n matches. It is told of all elements in document order; wanted says
// whether the answer matters.
func (c *compound) meet(n *html.Node, depth int, wanted bool) bool {
	for _, m := range c.not {
		wanted = !m.meet(n, depth) && wanted
	}
	if !wanted || c.has&^c.ahead.found[n] != 0 || c.plain != nil && !c.plain.Match(n) {
		return false
	}
	for _, p := range c.nth {
		if !p.meet(n) {
			return false
		}
	}
	return true
}

// compounds parses compounds.
type compounds struct {
	ahead *lookahead
	inHas bool // of the argument of a :has
}

// parse reads css, which is valid.
func (p compounds) parse(css string) (*compound, error) {
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
				if err := p.relative(c, name, css[end+1:next-1]); err != nil {
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
			place, err := newNth(name, argument, &p.ahead.counts)
			if err != nil {
				return nil, err
			}
			if place != nil {
				c.nth = append(c.nth, place)
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

// relative adds the pseudo-class name with its argument to c.
func (p compounds) relative(c *compound, name, argument string) error {
	if name == "not" {
		m, err := p.matcher(argument)
		c.not = append(c.not, m)
		return err
	}
	if p.inHas {
		return errors.New(":has within :has is not supported; name what is within the innermost alone, or select by a class")
	}
	p.inHas = true
	m, err := p.matcher(argument)
	if err != nil {
		return err
	}
	bit, err := p.ahead.add(m, name == "haschild")
	c.has |= bit
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
