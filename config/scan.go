package config

import (
	"errors"
	"io"
	"strings"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

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

// scan splits data into tokens. It reports what is too large or nested too deeply, and returns
// false then.
func (d *decoder) scan(data []byte) (token.Tokens, bool) {
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
	var s scanner.Scanner
	s.Init(string(data))
	var all token.Tokens
	var size sizes
	for {
		next, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return all, true
		}
		for _, t := range next {
			all.Add(t)
			if why := size.add(t); why != "" {
				d.failAt(position{t.Position.Line, t.Position.Column}, "%s", why)
				return nil, false
			}
		}
	}
}

// sizes counts what is in a file, token by token.
type sizes struct {
	aliases, tags, keyPairs int
	flow                    int     // open [ and {
	blocks                  []block // open mappings and lists that are written in lines
}

// block is a mapping or list that is written in lines.
type block struct {
	column int
	list   bool
	keys   int
}

// add counts t, and says what there is too much of, if anything.
func (s *sizes) add(t *token.Token) string {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		s.flow++
	case token.SequenceEndType, token.MappingEndType:
		s.flow = max(s.flow-1, 0)
	case token.DocumentHeaderType:
		s.flow, s.blocks = 0, nil
	case token.AliasType, token.AnchorType:
		s.aliases++
	case token.TagType, token.MappingKeyType:
		s.tags++
	case token.SequenceEntryType:
		if s.flow == 0 {
			s.enter(t.Position.Column, true)
		}
	case token.MappingValueType:
		key := t
		if t.Prev != nil {
			key = t.Prev
		}
		if s.flow == 0 {
			s.enter(key.Position.Column, false)
		}
	}
	switch {
	case s.aliases > maxAliases:
		return "the configuration has too many anchors and aliases (&NAME, *NAME); at most 10000"
	case s.tags > maxTags:
		return "the configuration has too many tags (!NAME) and keys marked by ?; leave them out"
	case s.keyPairs > maxKeyPairs:
		return "a mapping of the configuration has too many keys; about 10000 are possible"
	case s.flow+len(s.blocks) > maxDepth:
		return "the configuration is nested too deeply; at most 50 levels"
	}
	return ""
}

// enter goes to the mapping or list that has an entry at column, which may be new.
func (s *sizes) enter(column int, list bool) {
	for n := len(s.blocks); n > 0; n = len(s.blocks) {
		top := &s.blocks[n-1]
		if top.column == column && top.list == list {
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
	s.blocks = append(s.blocks, block{column: column, list: list})
}
