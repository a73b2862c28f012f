package html

import (
	"errors"
	"fmt"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// compound is what a chain joins, such as "p.x:not(.y):has(b)". Cascadia tries :not and :has on
// one element at a time and without a limit; here they are matchers of their own.
type compound struct {
	plain cascadia.Matcher // the rest; nil matches every element
	not   []*matcher
	has   uint64 // the tests of ahead that must hold
	ahead *lookahead
}

// meet reports whether n matches. It is told of all elements in document order; wanted says
// whether the answer matters.
func (c *compound) meet(n *html.Node, depth int, wanted bool) bool {
	for _, m := range c.not {
		wanted = !m.meet(n, depth) && wanted
	}
	return wanted && c.has&^c.ahead.found[n] == 0 && (c.plain == nil || c.plain.Match(n))
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
			next = end
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
