package pipeline

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// View says which part of a page is the document, and how its text is made. The zero View is the
// whole page. Options describes each field.
type View struct {
	// Select keeps only what matches one of these selectors, in document order. Remove then removes what matches.
	Select []Selector `json:"select,omitempty"`
	Remove []Selector `json:"remove,omitempty"`
	// Ignore blanks text that matches one of these regular expressions (RE2).
	Ignore []string `json:"ignore,omitempty"`
	// Confirm is in how many checks in a row a new text must be found before it is a version. 0 and 1 mean at once.
	Confirm int `json:"confirm,omitempty"`
	// FlipFlop is how many of the last texts that changed the document are no new version. 0 means none.
	FlipFlop int `json:"flip_flop,omitempty"`
	// Replaced makes a check that finds something in place of the page fail with FailReplaced, until it has stood for
	// 20 checks in a row.
	Replaced bool `json:"replaced,omitempty"`
	// Expect is ExpectAbsent where the page, or what Select names, need not be there yet. Then a page that is
	// not found (HTTP status 404 or 410, no such file), a selector that matches nothing and a page without text
	// are a document without text: a baseline, and later a removal.
	Expect string `json:"expect,omitempty"`
	// Items makes the document the items of a feed, or the elements of an array in JSON.
	Items bool `json:"items,omitempty"`
	// Sitemap says that the page is a sitemap or a sitemap index (https://www.sitemaps.org). Subscription.Follow says
	// which of its pages are watched. The sitemap itself has a text that never changes.
	Sitemap bool `json:"sitemap,omitempty"`
	// Value makes the document a single value, such as a price. Nil means that it is a text.
	Value *Value `json:"value,omitempty"`
}

// ExpectAbsent is a value of View.Expect.
const ExpectAbsent = "absent"

// Bounds of a View.
const (
	MaxConfirm  = 1000 // the largest value of View.Confirm
	MaxFlipFlop = 50   // the largest value of View.FlipFlop
)

// Selector names a part of a page. Exactly one of its fields is set, or From and perhaps To.
// Which of them can match depends on the page's type; one of another type matches nothing.
type Selector struct {
	// CSS is a CSS selector, for HTML, XML and Markdown. In XML the case of names does not count,
	// and names stand without their prefix.
	CSS string `json:"css,omitempty" doc:"A CSS selector, for HTML, XML and Markdown."`
	// XPath is an XPath 1.0 expression that names nodes, for HTML, XML and Markdown.
	XPath string `json:"xpath,omitempty" doc:"An XPath 1.0 expression that names nodes, for HTML, XML and Markdown."`
	// Path begins with a slash: a JSON pointer (RFC 6901) for JSON, an XPath for HTML and XML.
	Path string `json:"path,omitempty" doc:"With a slash in front: a JSON pointer, or an XPath for HTML and XML."`
	// JQ is a jq expression, for JSON.
	JQ string `json:"jq,omitempty" doc:"A jq expression, for JSON."`
	// Lines is a range of lines such as "10-20", "10-", "-20" or "10", for text. The first is 1.
	Lines string `json:"lines,omitempty" doc:"A range of lines such as 10-20, 10-, -20 or 10, for text."`
	// Regexp is a regular expression (RE2) for text. It names what it matches in each line.
	Regexp string `json:"regexp,omitempty" doc:"A regular expression (RE2) for text: it names what it matches in a line."`
	// From and To name a range: from the start of the first match of From to the start of the
	// first match of To behind it, or to the end of the page where To is empty. Each is a CSS
	// selector, or what ParseSelector reads as XPath or Regexp.
	From string `json:"from,omitempty" doc:"A range begins here: CSS, or xpath: or re: and what follows."`
	To   string `json:"to,omitempty" doc:"The range ends before the next match of this, or with the page."`
}

// ParseSelector reads a selector as users write it: CSS, or "xpath:", "jq:", "lines:" or "re:"
// and what follows. What begins with "//" is an XPath, and with another slash a Path.
func ParseSelector(text string) Selector {
	kind, rest, _ := strings.Cut(text, ":")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(text, "//"):
		return Selector{XPath: text}
	case strings.HasPrefix(text, "/"):
		return Selector{Path: text}
	case kind == "xpath":
		return Selector{XPath: rest}
	case kind == "jq":
		return Selector{JQ: rest}
	case kind == "lines":
		return Selector{Lines: rest}
	case kind == "re":
		return Selector{Regexp: rest}
	}
	return Selector{CSS: text}
}

// String returns what ParseSelector reads, or a range as "FROM to TO".
func (s Selector) String() string {
	switch {
	case s.XPath != "":
		return "xpath:" + s.XPath
	case s.Path != "":
		return s.Path
	case s.JQ != "":
		return "jq:" + s.JQ
	case s.Lines != "":
		return "lines:" + s.Lines
	case s.Regexp != "":
		return "re:" + s.Regexp
	case s.To != "":
		return s.From + " to " + s.To
	case s.From != "":
		return s.From
	}
	return s.CSS
}

// IsZero reports whether v is the whole page, taken as it is.
func (v View) IsZero() bool {
	if v.Confirm == 1 {
		v.Confirm = 0
	}
	all := reflect.ValueOf(v)
	for i := range all.NumField() {
		if f := all.Field(i); !f.IsZero() && (f.Kind() != reflect.Slice || f.Len() > 0) {
			return false
		}
	}
	return true
}

// Bounds of View.Ignore. A regular expression is compiled to a program: the time that a match
// takes is its instructions times the characters of the text.
const (
	maxPatterns       = 100
	maxPatternLength  = 1000 // characters
	maxPatternProgram = 1000 // instructions
)

// Patterns compiles the regular expressions of v.Ignore. Its error is a *FieldError, or several
// joined: Field is "ignore", or "ignore[1]" for the second expression.
func (v View) Patterns() ([]*regexp.Regexp, error) {
	if n := len(v.Ignore); n > maxPatterns {
		return nil, &FieldError{"ignore", fmt.Sprintf("%d regular expressions are too many; at most %d", n, maxPatterns)}
	}
	var errs []error
	compiled := make([]*regexp.Regexp, len(v.Ignore))
	for i, pattern := range v.Ignore {
		var err error
		if compiled[i], err = compilePattern(pattern); err != nil {
			errs = append(errs, &FieldError{fmt.Sprintf("ignore[%d]", i), err.Error()})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return compiled, nil
}

// compilePattern returns in words for the user why pattern cannot be used.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if n := utf8.RuneCountInString(pattern); n > maxPatternLength {
		return nil, fmt.Errorf("a regular expression of %d characters is too long; at most %d", n, maxPatternLength)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %s", pattern, printableError(err))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %s", pattern, printableError(err))
	}
	if n := len(program.Inst); n > maxPatternProgram {
		return nil, fmt.Errorf("%q is too large: it compiles to %d instructions, and at most %d are possible; write * or + in place of large counts such as {1,30}", pattern, n, maxPatternProgram)
	}
	return regexp.Compile(pattern)
}

// printableError returns the text of err, quoted if it has characters that cannot be seen, such as those
// that control a terminal: errors of other packages repeat what the user wrote.
func printableError(err error) string {
	s := err.Error()
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// MaxText is the largest size of the text of a document, in bytes.
const MaxText = 2 << 20
