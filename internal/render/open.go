package render

import (
	"fmt"
	"strings"
)

// opened is an action that needs an {{end}}.
type opened struct {
	text string
	line int
}

// unclosed says which action of source lacks its {{end}}; "" where none does. text/template
// names only the end of the source.
func unclosed(source string) string {
	var open []opened
	for at := 0; ; {
		begin := strings.Index(source[at:], "{{")
		if begin < 0 {
			break
		}
		begin += at
		end := endOf(source, begin)
		if end < 0 {
			return "" // the action itself is cut, which text/template says
		}
		body := strings.TrimSpace(strings.TrimPrefix(source[begin+2:end-2], "-"))
		word, _, _ := strings.Cut(strings.TrimSuffix(body, "-"), " ")
		switch strings.TrimSpace(word) {
		case "if", "range", "with", "block", "define":
			open = append(open, opened{source[begin:end], 1 + strings.Count(source[:begin], "\n")})
		case "end":
			if len(open) == 0 {
				return ""
			}
			open = open[:len(open)-1]
		}
		at = end
	}
	if len(open) == 0 {
		return ""
	}
	last := open[len(open)-1]
	return fmt.Sprintf("line %d: %s has no {{end}}; write one where it ends", last.line, Short(Clean(last.text), 60))
}

// endOf returns where the action ends that begins at begin, behind its }}; -1 where it does
// not.
func endOf(source string, begin int) int {
	quote := byte(0)
	if body := strings.TrimLeft(source[begin+2:], "- "); strings.HasPrefix(body, "/*") {
		comment := strings.Index(source[begin:], "*/")
		if comment < 0 {
			return -1
		}
		begin += comment
	}
	for i := begin + 2; i < len(source); i++ {
		c := source[i]
		switch {
		case quote != 0 && quote != '`' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`' || c == '\'':
			quote = c
		case strings.HasPrefix(source[i:], "}}"):
			return i + 2
		}
	}
	return -1
}
