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
		case xpathSyntaxError:
			err = r
		default:
			panic(r)
		}
	}()
	p := &xpathParser{text: text}
	p.next()
	p.parseExpression()
	if p.token != "" {
		p.panicMissing("an operator or the end of the expression")
	}
	return p.fastText.String() + text[p.copiedTo:], nil
}

func isXPath(text string) bool {
	_, err := checkXPath(text)
	return err == nil
}

// xpathSyntaxError ends the parser.
type xpathSyntaxError struct {
	column int // in characters, from 1
	why    string
}

func (m xpathSyntaxError) Error() string { return fmt.Sprintf("column %d: %s", m.column, m.why) }

// xpathParser reads an expression token by token. It only checks it.
type xpathParser struct {
	text  string
	at    int    // where token begins
	token string // empty at the end
	// fastText is the result of checkXPath up to copiedTo in text.
	fastText strings.Builder
	copiedTo int
}

func (p *xpathParser) panicAt(at int, why string) {
	panic(xpathSyntaxError{utf8.RuneCountInString(p.text[:at]) + 1, why})
}

// panicMissing reports that want is missing at the present token.
func (p *xpathParser) panicMissing(want string) {
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
	p.token = p.scanToken(trimmed)
}

// scanToken returns the token at the beginning of s.
func (p *xpathParser) scanToken(s string) string {
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
		return s[:prefixLength(s, func(r rune) bool { return isDigit(r) || r == '.' })]
	case isNameStart(r):
		return s[:prefixLength(s, func(r rune) bool {
			return isNameStart(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-.·", r)
		})]
	case strings.ContainsRune("()[].@,:/|+-=<>*$", r):
		return s[:size]
	}
	p.panicAt(p.at, fmt.Sprintf("%q means nothing in an XPath", r))
	return ""
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// prefixLength returns how many bytes at the beginning of s are of characters for which in is true.
func prefixLength(s string, in func(rune) bool) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return !in(r) }); i >= 0 {
		return i
	}
	return len(s)
}

// isName reports whether the present token is a name.
func (p *xpathParser) isName() bool {
	r, _ := utf8.DecodeRuneInString(p.token)
	return p.token != "" && isNameStart(r)
}

// xpathOperators stand between two operands.
var xpathOperators = []string{"or", "and", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "div", "mod", "|"}

func (p *xpathParser) parseExpression() {
	for {
		for p.token == "-" {
			p.next()
		}
		p.parseOperand()
		if !slices.Contains(xpathOperators, p.token) {
			return
		}
		p.next()
	}
}

// parseOperand reads a value or a path.
func (p *xpathParser) parseOperand() {
	switch first := p.token; {
	case first == "/":
		p.next()
		if p.beginsStep() {
			p.parseSteps()
		}
		return
	case first == "//":
		p.next()
		p.parseSteps()
		return
	case first == "$":
		p.panicAt(p.at, "variables are not supported")
	case first == "(":
		p.parseList(false)
	case first != "" && strings.ContainsAny(first[:1], `"'0123456789`), len(first) > 1 && first[0] == '.' && first != "..":
		p.next()
	case p.beginsStep():
		p.parseSteps()
		return
	default:
		p.panicMissing("an expression")
	}
	p.parseConditions("")
	if p.token == "/" || p.token == "//" {
		p.next()
		p.parseSteps()
	}
}

func (p *xpathParser) beginsStep() bool {
	return p.isName() || slices.Contains([]string{".", "..", "@", "*", "("}, p.token)
}

// parseSteps reads one step or several.
func (p *xpathParser) parseSteps() {
	for {
		p.parseStep()
		if p.token != "/" && p.token != "//" {
			return
		}
		p.next()
	}
}

func (p *xpathParser) parseStep() {
	test := ""
	switch p.token {
	case ".", "..":
		p.next()
	case "(":
		p.parseList(false)
	case "@":
		p.next()
		p.parseNodeTest()
	default:
		test = p.parseNodeTest()
	}
	p.parseConditions(test)
}

// parseNodeTest reads a name or *, perhaps behind an axis or a prefix, or a function call. It returns the
// name or * of children.
func (p *xpathParser) parseNodeTest() (child string) {
	if p.token == "*" {
		p.next()
		return "*"
	}
	if !p.isName() {
		p.panicMissing("the name of an element or attribute")
	}
	axis, at := p.token, p.at
	p.next()
	switch p.token {
	case "::":
		if !slices.Contains(xpathAxes, axis) {
			p.panicAt(at, fmt.Sprintf("there is no axis %s; there are %s", axis, strings.Join(xpathAxes, ", ")))
		}
		p.next()
		p.parseNodeTest()
		return ""
	case ":":
		p.next()
		if p.token != "*" && !p.isName() {
			p.panicMissing("a name behind the prefix " + axis)
		}
		name := axis + ":" + p.token
		p.next()
		if p.token == "(" {
			p.parseList(true)
			return ""
		}
		return name
	case "(":
		p.parseList(true)
		return ""
	}
	return axis
}

var xpathAxes = []string{
	"ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self", "following",
	"following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self",
}

// parseList reads expressions with commas between them, in parentheses, which may hold nothing if empty is
// true.
func (p *xpathParser) parseList(empty bool) {
	at := p.at
	p.next()
	if p.token == ")" && empty {
		p.next()
		return
	}
	p.parseExpression()
	for p.token == "," {
		p.next()
		p.parseExpression()
	}
	p.parseClosing(at, "(", ")")
}

// parseConditions reads the conditions in brackets. child is the name of the children that they are for, if
// it is known.
func (p *xpathParser) parseConditions(child string) {
	for ; p.token == "["; child = "" {
		at := p.at
		p.next()
		switch p.token {
		case "":
			p.panicAt(at, "the [ is not closed; a condition and a ] are missing")
		case "]":
			p.panicMissing("a condition such as 1 or @class")
		}
		p.parseExpression()
		condition := strings.Join(strings.Fields(p.text[at+1:p.at]), "")
		p.parseClosing(at, "[", "]")
		if child != "" && condition == "last()" {
			p.fastText.WriteString(p.text[p.copiedTo:at] + "[not(following-sibling::" + child + ")]")
			p.copiedTo = at + strings.IndexByte(p.text[at:], ']') + 1
		}
	}
}

// parseClosing reads what closes the bracket open at at.
func (p *xpathParser) parseClosing(at int, open, closing string) {
	switch p.token {
	case closing:
		p.next()
	case "":
		p.panicAt(at, fmt.Sprintf("the %s is not closed; a %s is missing", open, closing))
	default:
		p.panicMissing("an operator or " + closing)
	}
}
