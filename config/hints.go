package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What is meant as text and is not read as such.
const (
	quoteHint   = `where it belongs to the text, write the text in quotes, such as "#main"`
	commentHint = "# begins a comment here; " + quoteHint
	tabHint     = "a tab stands here; YAML is indented with spaces only"
)

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)
	// comment is one that looks like a part of the text: comments mostly begin with a blank.
	comment = regexp.MustCompile(`(?:^|[\s\[{,])#[^\s#!]`)
	indent  = regexp.MustCompile(`^ *\t`)
)

// longestLine bounds what is searched for each mistake, in bytes.
const longestLine = 4096

// sourceLine returns line n of the file, counted from 1; "" where there is none, or one that
// nobody wrote by hand.
func (d *decoder) sourceLine(n int) string {
	if n < 1 || n > len(d.source) || len(d.source[n-1]) > longestLine {
		return ""
	}
	return d.source[n-1]
}

// commentIn returns the column of a comment in line that may be meant as text, or 0.
func commentIn(line string) int {
	blank := quoted.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
	at := comment.FindStringIndex(blank)
	if at == nil {
		return 0
	}
	before := line[:at[1]]
	return utf8.RuneCountInString(before[:strings.LastIndexByte(before, '#')]) + 1
}

// misread looks for what makes the YAML at p, where the parser gave up, something else than
// it seems. It returns where it stands, and what to do; "" where there is no such thing.
func (d *decoder) misread(p position) (position, string) {
	line := d.sourceLine(p.line)
	if at := indent.FindString(line); at != "" {
		return position{p.line, len(at)}, tabHint
	}
	if column := commentIn(line); column > 0 {
		return position{p.line, column}, commentHint
	}
	if before := d.sourceLine(p.line - 1); strings.ContainsAny(before, "[{") {
		if column := commentIn(before); column > 0 {
			return position{p.line - 1, column}, commentHint
		}
	}
	// A comment in a later line may hide what closes the list that begins here.
	for n := p.line + 1; n <= len(d.source) && strings.ContainsAny(line, "[{"); n++ {
		later := d.sourceLine(n)
		if column := commentIn(later); column > 0 && strings.ContainsAny(later[strings.IndexByte(later, '#'):], "]}") {
			return position{n, column}, commentHint
		}
	}
	return p, ""
}

// cutShort warns of a text at p whose end is taken as a comment: issue #5.
func (d *decoder) cutShort(p position, path string) {
	line := []rune(d.sourceLine(p.line))
	if p.column < 1 || p.column > len(line) {
		return
	}
	rest := string(line[p.column-1:])
	if column := commentIn(rest); column > 1 && !strings.ContainsAny(rest[:1], `"'|>`) {
		d.warnAt(position{p.line, p.column + column - 1}, "%s ends before the #, which begins a comment; %s", path, quoteHint)
	}
}
