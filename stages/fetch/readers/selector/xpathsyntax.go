package selector

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkXPath returns where and why text breaks the grammar of XPath 1.0, or nil. The library that
// evaluates expressions ignores some mistakes, and does not say where the others are.
//
// Fast names the same nodes as text. The library counts all siblings of each node to evaluate
// li[last()], and looks at one sibling to evaluate li[not(following-sibling::li)].
func checkXPath(text string) (fast string, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case xpathMistake:
			err = r
		default:
			panic(r)
		}
	}()
	p := &xpathParser{text: text}
	p.next()
	p.expression()
	if p.token != "" {
		p.fail("an operator or the end of the expression")
	}
	return p.fast.String() + text[p.copied:], nil
}

func isXPath(text string) bool {
	_, err := checkXPath(text)
	return err == nil
}

// xpathMistake ends the parser.
type xpathMistake struct {
	column int // in characters, from 1
	why    string
}

func (m xpathMistake) Error() string { return fmt.Sprintf("column %d: %s", m.column, m.why) }

// xpathParser reads an expression token by token. It only checks it.
type xpathParser struct {
	text  string
	at    int    // where token begins
	token string // empty at the end
	// fast is the result of checkXPath up to copied in text.
	fast   strings.Builder
	copied int
}

func (p *xpathParser) panicAt(at int, why string) {
	panic(xpathMistake{utf8.RuneCountInString(p.text[:at]) + 1, why})
}

// fail reports that want is missing at the present token.
func (p *xpathParser) fail(want string) {
	if p.token == "" {
		p.panicAt(p.at, "it ends where "+want+" is expected")
	}
	p.panicAt(p.at, fmt.Sprintf("there is %s where %s is expected", p.token, want))
}

// next goes on to the next token.
func (p *xpathParser) next() {
	p.at += len(p.token)
	rest := p.text[p.at:]
	trimmed := strings.TrimLeft(rest, " \t\r\n")
	p.at += len(rest) - len(trimmed)
	p.token = p.scan(trimmed)
}

// scan returns the token at the beginning of s.
func (p *xpathParser) scan(s string) string {
	if s == "" {
		return ""
	}
	for _, two := range []string{"//", "::", "..", "!=", "<=", ">="} {
		if strings.HasPrefix(s, two) {
			return two
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '"' || r == '\'':
		end := strings.IndexRune(s[1:], r)
		if end < 0 {
			p.panicAt(p.at, fmt.Sprintf("the text that %c begins has no end", r))
		}
		return s[:end+2]
	case isDigit(r) || r == '.' && len(s) > 1 && isDigit(rune(s[1])):
		return s[:span(s, func(r rune) bool { return isDigit(r) || r == '.' })]
	case nameBegins(r):
		return s[:span(s, func(r rune) bool {
			return nameBegins(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-.·", r)
		})]
	case strings.ContainsRune("()[].@,:/|+-=<>*$", r):
		return s[:size]
	}
	p.panicAt(p.at, fmt.Sprintf("%q means nothing in an XPath", r))
	return ""
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func nameBegins(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// span returns how many bytes at the beginning of s are of characters for which in is true.
func span(s string, in func(rune) bool) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); i >= 0 {
		return i
	}
	return len(s)
}

// isName reports whether the present token is a name.
func (p *xpathParser) isName() bool {
	r, _ := utf8.DecodeRuneInString(p.token)
	return p.token != "" && nameBegins(r)
}

// operators stand between two operands.
var operators = []string{"or", "and", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "div", "mod", "|"}

func (p *xpathParser) expression() {
	for {
		for p.token == "-" {
			p.next()
		}
		p.operand()
		if !slices.Contains(operators, p.token) {
			return
		}
		p.next()
	}
}

// operand reads a value or a path.
func (p *xpathParser) operand() {
	switch first := p.token; {
	case first == "/":
		p.next()
		if p.beginsStep() {
			p.steps()
		}
		return
	case first == "//":
		p.next()
		p.steps()
		return
	case first == "$":
		p.panicAt(p.at, "variables are not supported")
	case first == "(":
		p.list(false)
	case first != "" && strings.ContainsAny(first[:1], `"'0123456789`), len(first) > 1 && first[0] == '.' && first != "..":
		p.next()
	case p.beginsStep():
		p.steps()
		return
	default:
		p.fail("an expression")
	}
	p.conditions("")
	if p.token == "/" || p.token == "//" {
		p.next()
		p.steps()
	}
}

func (p *xpathParser) beginsStep() bool {
	return p.isName() || slices.Contains([]string{".", "..", "@", "*", "("}, p.token)
}

// steps reads one step or several.
func (p *xpathParser) steps() {
	for {
		p.step()
		if p.token != "/" && p.token != "//" {
			return
		}
		p.next()
	}
}

func (p *xpathParser) step() {
	test := ""
	switch p.token {
	case ".", "..":
		p.next()
	case "(":
		p.list(false)
	case "@":
		p.next()
		p.nodeTest()
	default:
		test = p.nodeTest()
	}
	p.conditions(test)
}

// nodeTest reads a name or *, perhaps behind an axis or a prefix, or a function call. It returns the
// name or * of children.
func (p *xpathParser) nodeTest() (child string) {
	if p.token == "*" {
		p.next()
		return "*"
	}
	if !p.isName() {
		p.fail("the name of an element or attribute")
	}
	axis, at := p.token, p.at
	p.next()
	switch p.token {
	case "::":
		if !slices.Contains(axes, axis) {
			p.panicAt(at, fmt.Sprintf("there is no axis %s; there are %s", axis, strings.Join(axes, ", ")))
		}
		p.next()
		p.nodeTest()
		return ""
	case ":":
		p.next()
		if p.token != "*" && !p.isName() {
			p.fail("a name behind the prefix " + axis)
		}
		name := axis + ":" + p.token
		p.next()
		if p.token == "(" {
			p.list(true)
			return ""
		}
		return name
	case "(":
		p.list(true)
		return ""
	}
	return axis
}

var axes = []string{
	"ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self", "following",
	"following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self",
}

// list reads expressions with commas between them, in parentheses, which may hold nothing if empty is
// true.
func (p *xpathParser) list(empty bool) {
	at := p.at
	p.next()
	if p.token == ")" && empty {
		p.next()
		return
	}
	p.expression()
	for p.token == "," {
		p.next()
		p.expression()
	}
	p.end(at, "(", ")")
}

// conditions reads the conditions in brackets. child is the name of the children that they are for, if
// it is known.
func (p *xpathParser) conditions(child string) {
	for ; p.token == "["; child = "" {
		at := p.at
		p.next()
		switch p.token {
		case "":
			p.panicAt(at, "the [ is not closed; a condition and a ] are missing")
		case "]":
			p.fail("a condition such as 1 or @class")
		}
		p.expression()
		condition := strings.Join(strings.Fields(p.text[at+1:p.at]), "")
		p.end(at, "[", "]")
		if child != "" && condition == "last()" {
			p.fast.WriteString(p.text[p.copied:at] + "[not(following-sibling::" + child + ")]")
			p.copied = at + strings.IndexByte(p.text[at:], ']') + 1
		}
	}
}

// end reads what closes the bracket open at at.
func (p *xpathParser) end(at int, open, closing string) {
	switch p.token {
	case closing:
		p.next()
	case "":
		p.panicAt(at, fmt.Sprintf("the %s is not closed; a %s is missing", open, closing))
	default:
		p.fail("an operator or " + closing)
	}
}
