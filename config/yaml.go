package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"

	"github.com/vokter/vokter/internal/render"
)

// parseYAML returns the body of data, or nil where there is none.
func (d *decoder) parseYAML(data []byte) ast.Node {
	data, ok := d.setSource(data)
	if !ok {
		return nil
	}
	return d.parseBody(data, 0)
}

// setSource makes data the source of d, and returns it without a byte order mark. It reports data that is
// not UTF-8 or too large, and returns false then.
func (d *decoder) setSource(data []byte) ([]byte, bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // Windows' editors write it
	if i := invalidUTF8(data); i >= 0 {
		line := data[bytes.LastIndexByte(data[:i], '\n')+1 : i]
		d.failAt(position{bytes.Count(data[:i], []byte("\n")) + 1, utf8.RuneCount(line) + 1}, "the file is not UTF-8; save it in that encoding")
		return nil, false
	}
	d.source = strings.Split(string(data), "\n")
	signs := 0
	for _, c := range data {
		if strings.IndexByte("[]{},:-?*&!'\"#\n", c) >= 0 {
			signs++ // every token has at least one beside it
		}
	}
	if signs > maxSigns {
		d.failAt(position{1, 1}, "the configuration is too large: it has more than %d signs such as : and -; split it among several processes", maxSigns)
		return nil, false
	}
	return data, true
}

// parseBody returns the body of data, or nil if it has none. The source has so many lines before data.
func (d *decoder) parseBody(data []byte, lines int) ast.Node {
	tokens, ok := d.scanTokens(data, lines)
	if !ok {
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.reportSyntaxError(err)
		return nil
	}
	var body ast.Node
	for _, doc := range f.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			d.failNode(doc.Body, "a second YAML document starts here; a configuration has only one")
		default:
			body = doc.Body
		}
	}
	if _, null := body.(*ast.NullNode); null {
		return nil
	}
	return body
}

// invalidUTF8 returns where data stops being UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// reportSyntaxError reports that the file is not YAML.
func (d *decoder) reportSyntaxError(err error) {
	var ye yaml.Error
	if !errors.As(err, &ye) || ye.GetToken() == nil || ye.GetToken().Position == nil {
		d.failAt(position{1, 1}, "not YAML: %v", err)
		return
	}
	p := position{ye.GetToken().Position.Line, ye.GetToken().Position.Column}
	if at, hint := d.findMisreading(p); hint != "" {
		d.failAt(at, "not YAML: %s", hint)
		return
	}
	hint := ""
	if strings.Contains(d.sourceLine(p.line), "${") {
		hint = `; within [ ] and { } write "${NAME}" in quotes`
	}
	d.failAt(p, "not YAML: %s%s", ye.GetMessage(), hint)
}

// readFile reads a file of at most maxFileBytes bytes. Its errors say what to do.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, render.FileError(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name a file in it", path)
	case info.Mode()&fs.ModeNamedPipe != 0 && !isOpenFile(path):
		return nil, fmt.Errorf("%s is a named pipe, and to open it may take for ever; name a file, or /dev/stdin", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, render.FileError(path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1)) // a device or a pipe does not tell its size
	switch {
	case err != nil:
		return nil, render.FileError(path, err)
	case len(b) > maxFileBytes:
		return nil, fmt.Errorf("the file %s is larger than %d MiB", path, maxFileBytes>>20)
	}
	return b, nil
}

// isOpenFile reports whether path names a file that the process has open already, as a shell's <(...) does.
func isOpenFile(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// Bounds of a file, checked before it is parsed: the parser's time and memory grow with the
// square of the nesting and of the keys in a mapping.
const (
	maxSigns   = 2_000_000 // some 150,000 subscriptions
	maxAliases = 10_000    // with their anchors
	maxTags    = 1000      // with keys that "?" marks: no configuration needs either
	// maxKeyPairs bounds the sum of keys*keys/2 over all mappings: one mapping may have some
	// 10,000 keys.
	maxKeyPairs = 50_000_000
)

// scanTokens splits data into tokens. The source has so many lines before data. If data exceeds a bound of size
// or nesting, scan reports that and returns false.
func (d *decoder) scanTokens(data []byte, lines int) (token.Tokens, bool) {
	var s scanner.Scanner
	s.Init(string(data))
	var all token.Tokens
	for {
		next, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return all, true
		}
		for _, t := range next {
			t.Position.Line += lines
			all.Add(t)
			if why := d.counts.add(t); why != "" {
				d.failAt(position{t.Position.Line, t.Position.Column}, "%s", why)
				return nil, false
			}
		}
	}
}

// tokenCounts holds the counts of some tokens of a file.
type tokenCounts struct {
	aliases, tags, keyPairs int
	flowDepth               int         // open [ and {
	blocks                  []openBlock // open mappings and lists that are written in lines
}

// openBlock is a mapping or list that is written in lines and has not ended yet.
type openBlock struct {
	column int
	isList bool
	keys   int
}

// add counts t, and says what there is too much of, if anything.
func (s *tokenCounts) add(t *token.Token) string {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		s.flowDepth++
	case token.SequenceEndType, token.MappingEndType:
		s.flowDepth = max(s.flowDepth-1, 0)
	case token.DocumentHeaderType:
		s.flowDepth, s.blocks = 0, nil
	case token.AliasType, token.AnchorType:
		s.aliases++
	case token.TagType, token.MappingKeyType:
		s.tags++
	case token.SequenceEntryType:
		if s.flowDepth == 0 {
			s.enterBlock(t.Position.Column, true)
		}
	case token.MappingValueType:
		key := t
		if t.Prev != nil {
			key = t.Prev
		}
		if s.flowDepth == 0 {
			s.enterBlock(key.Position.Column, false)
		}
	}
	switch {
	case s.aliases > maxAliases:
		return "the configuration has too many anchors and aliases (&NAME, *NAME); at most 10000"
	case s.tags > maxTags:
		return "the configuration has too many tags (!NAME) and keys marked by ?; leave them out"
	case s.keyPairs > maxKeyPairs:
		return "a mapping of the configuration has too many keys; about 10000 are possible"
	case s.flowDepth+len(s.blocks) > maxDepth:
		return "the configuration is nested too deeply; at most 50 levels"
	}
	return ""
}

// enterBlock counts an entry at column: of a mapping or list that is open, or of a new one.
func (s *tokenCounts) enterBlock(column int, list bool) {
	for n := len(s.blocks); n > 0; n = len(s.blocks) {
		top := &s.blocks[n-1]
		if top.column == column && top.isList == list {
			top.keys++
			if !list {
				s.keyPairs += top.keys
			}
			return
		}
		// A list may stand as far left as the key that it belongs to.
		if top.column < column || top.column == column && list {
			break
		}
		s.blocks = s.blocks[:n-1]
	}
	s.blocks = append(s.blocks, openBlock{column: column, isList: list})
}

// Hints for values that YAML does not read as they were meant.
const (
	quoteHint   = `if it is part of the value, put the value in quotes, such as "#main"`
	commentHint = "# starts a comment here; " + quoteHint
	tabHint     = "this line is indented with a tab; YAML allows only spaces"
)

var (
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'`)
	// suspectComment matches a comment that looks like a part of the text: comments mostly begin with a blank.
	suspectComment = regexp.MustCompile(`(?:^|[\s\[{,])#[^\s#!]`)
	tabIndent      = regexp.MustCompile(`^ *\t`)
)

// maxSearchedLine is the length in bytes of the longest line that is searched for the place of a mistake.
const maxSearchedLine = 4096

// sourceLine returns line n of the file, counted from 1; "" if there is none, or if it is
// too long to be written by hand.
func (d *decoder) sourceLine(n int) string {
	if n < 1 || n > len(d.source) || len(d.source[n-1]) > maxSearchedLine {
		return ""
	}
	return d.source[n-1]
}

// commentIn returns the column of a comment in line that may be meant as text, or 0.
func commentIn(line string) int {
	blank := quotedText.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("x", len(s)) })
	at := suspectComment.FindStringIndex(blank)
	if at == nil {
		return 0
	}
	before := line[:at[1]]
	return utf8.RuneCountInString(before[:strings.LastIndexByte(before, '#')]) + 1
}

// findMisreading looks for the usual cause of a syntax error at p: a tab, or a # that starts a comment.
// It returns where the cause is and what to do, or "" if it finds none.
func (d *decoder) findMisreading(p position) (position, string) {
	line := d.sourceLine(p.line)
	if at := tabIndent.FindString(line); at != "" {
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

// warnOfCutValue warns of a value at p whose end is read as a comment, as in: issue #5. YAML cuts it off.
func (d *decoder) warnOfCutValue(p position, path string) {
	line := []rune(d.sourceLine(p.line))
	if p.column < 1 || p.column > len(line) {
		return
	}
	rest := string(line[p.column-1:])
	if column := commentIn(rest); column > 1 && !strings.ContainsAny(rest[:1], `"'|>`) {
		d.warnAt(position{p.line, p.column + column - 1}, "%s ends before the #, which starts a comment; %s", path, quoteHint)
	}
}

// positionTable holds the position of each key that was read, by its path. It groups the keys of a list entry,
// because a file may have a hundred thousand entries with the same keys.
type positionTable struct {
	topLevel map[string]position        // paths outside of lists
	entries  map[string][]entryPosition // by the path of an entry, such as subscriptions[0]
	names    map[string]string          // the names in entries, each stored once
}

// entryPosition is the position of a key within an entry of a list. The name is the rest of its path, such as
// .url. Line and column have 32 bits to save memory.
type entryPosition struct {
	name         string
	line, column int32
}

func newPositionTable() positionTable {
	return positionTable{topLevel: map[string]position{"": {1, 1}}, entries: make(map[string][]entryPosition), names: make(map[string]string)}
}

// splitEntryPath splits path behind the index of an entry of a list. It returns false if path is outside of lists.
func splitEntryPath(path string) (entry, name string, ok bool) {
	i := strings.IndexByte(path, ']') + 1
	return path[:i], path[i:], i > 0
}

// set stores that path is at p, in place of an earlier position.
func (a *positionTable) set(path string, p position) {
	entry, name, ok := splitEntryPath(path)
	if !ok {
		a.topLevel[path] = p
		return
	}
	known, ok := a.names[name]
	if !ok {
		known = strings.Clone(name)
		a.names[known] = known
	}
	a.entries[entry] = append(a.entries[entry], entryPosition{known, int32(p.line), int32(p.column)})
}

// get returns the position of path. It returns false if path was not read.
func (a *positionTable) get(path string) (position, bool) {
	entry, name, ok := splitEntryPath(path)
	if !ok {
		p, ok := a.topLevel[path]
		return p, ok
	}
	all := a.entries[entry]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].name == name {
			return position{int(all[i].line), int(all[i].column)}, true
		}
	}
	return position{}, false
}
