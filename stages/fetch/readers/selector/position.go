package selector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// nthCondition is a pseudo-class that tells elements by their place among their siblings, such as
// :nth-child(2n+1). Cascadia counts the siblings of each element again, which takes the square of
// their number.
type nthCondition struct {
	a, b            int
	fromEnd, ofType bool
	only            bool // the element is the first one and the last one
	counts          *siblingCounts
}

// siblingPosition is the place of an element among all its siblings that are elements, and among those of its
// type.
type siblingPosition struct{ all, ofType placeInCount }

// placeInCount is the position of an element, from 1 on, in the total of those that are counted.
type placeInCount struct{ position, total int }

// siblingCounts are the positions of the elements, for those parents that were asked for.
type siblingCounts struct {
	positions map[*html.Node]siblingPosition
}

// matches reports whether the element n is at the place.
func (p *nthCondition) matches(n *html.Node) bool {
	if n.Parent == nil {
		return false
	}
	at := p.counts.positionOf(n)
	c := at.all
	if p.ofType {
		c = at.ofType
	}
	i := c.position
	switch {
	case p.only:
		return c.total == 1
	case p.fromEnd:
		i = c.total - c.position + 1
	}
	i -= p.b
	if p.a == 0 {
		return i == 0
	}
	return i%p.a == 0 && i/p.a >= 0
}

// positionOf returns the position of n. It counts all children of a parent at once.
func (s *siblingCounts) positionOf(n *html.Node) siblingPosition {
	if at, known := s.positions[n]; known {
		return at
	}
	if s.positions == nil {
		s.positions = make(map[*html.Node]siblingPosition)
	}
	all, ofType := 0, make(map[string]int)
	for c := n.Parent.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			all++
			ofType[c.Data]++
			s.positions[c] = siblingPosition{placeInCount{position: all}, placeInCount{position: ofType[c.Data]}}
		}
	}
	for c := n.Parent.FirstChild; c != nil; c = c.NextSibling {
		if at, ok := s.positions[c]; ok {
			at.all.total, at.ofType.total = all, ofType[c.Data]
			s.positions[c] = at
		}
	}
	return s.positions[n]
}

// nthFormula is what stands in the brackets of :nth-child and its like.
var nthFormula = regexp.MustCompile(`^(?:([+-]?\d*)n(?:[ \t\r\n\f]*([+-])[ \t\r\n\f]*(\d+))?|([+-]?\d+))$`)

// newNthCondition returns what the pseudo-class name with its argument means, and nil where it is none of
// these.
func newNthCondition(name, argument string, counts *siblingCounts) (*nthCondition, error) {
	p := &nthCondition{b: 1, counts: counts, fromEnd: strings.Contains(name, "last"), ofType: strings.HasSuffix(name, "of-type")}
	switch name {
	case "only-child", "only-of-type":
		p.only = true
		return p, nil
	case "first-child", "last-child", "first-of-type", "last-of-type":
		return p, nil
	case "nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type":
	default:
		return nil, nil
	}
	argument = strings.ToLower(strings.Trim(argument, " \t\r\n\f"))
	switch argument {
	case "even":
		argument = "2n"
	case "odd":
		argument = "2n+1"
	}
	m := nthFormula.FindStringSubmatch(argument)
	if m == nil {
		return nil, fmt.Errorf(":%s(%s) is not supported; write a number, even, odd, or a formula such as 2n+1", name, argument)
	}
	a, b := m[1], m[2]+m[3]
	switch {
	case m[4] != "":
		a, b = "0", m[4]
	case a == "" || a == "+" || a == "-":
		a += "1"
	}
	if b == "" {
		b = "0"
	}
	var err, err2 error
	p.a, err = strconv.Atoi(a)
	p.b, err2 = strconv.Atoi(b)
	if err != nil || err2 != nil {
		return nil, fmt.Errorf(":%s(%s) has too large a number", name, argument)
	}
	return p, nil
}
