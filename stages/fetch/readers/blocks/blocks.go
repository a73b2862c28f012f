// Package blocks builds the Content of a pipeline.Text: what a Reader needs to write
// text that follows the rules.
package blocks

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// Builder collects blocks of text. White space is collapsed, and other control
// characters, soft hyphens, zero-width spaces and byte order marks are dropped; invalid
// UTF-8 becomes U+FFFD. Blocks and items without text leave no trace. The zero Builder is
// ready for use.
type Builder struct {
	buf          []byte
	inBlock      bool           // the last block has text and no end
	pendingSpace bool           // white space came since its last character
	keys         []pipeline.Key // of the items
	openItems    []int          // the indexes of the open ones
}

// How a byte below 0x80 is treated.
const (
	classPlain = iota
	classSpace
	classDrop
)

var asciiClasses = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case unicode.IsSpace(rune(c)):
			t[c] = classSpace
		case unicode.IsControl(rune(c)):
			t[c] = classDrop
		}
	}
	return t
}()

func isPlain(c byte) bool { return c < utf8.RuneSelf && asciiClasses[c] == classPlain }

// Text appends s to the current block.
func (b *Builder) Text(s []byte) {
	for i := 0; i < len(s); {
		if s[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			i += n
			switch {
			case unicode.IsSpace(r):
				b.pendingSpace = true
			case r == '\u00ad', r == '\u200b', r == '\ufeff', unicode.IsControl(r):
			default:
				b.writeDueSpace()
				b.buf = utf8.AppendRune(b.buf, r)
			}
			continue
		}
		switch asciiClasses[s[i]] {
		case classSpace:
			b.pendingSpace = true
			i++
		case classDrop:
			i++
		default:
			start := i
			for i < len(s) && (isPlain(s[i]) || s[i] == ' ' && i+1 < len(s) && isPlain(s[i+1])) {
				i++
			}
			b.writeDueSpace()
			b.buf = append(b.buf, s[start:i]...)
		}
	}
}

// writeDueSpace writes the space that is due before a character.
func (b *Builder) writeDueSpace() {
	if b.inBlock && b.pendingSpace {
		b.buf = append(b.buf, ' ')
	}
	b.inBlock, b.pendingSpace = true, false
}

// Space separates what comes from what stands before in the block.
func (b *Builder) Space() { b.pendingSpace = true }

// IsSpaced reports whether white space came since the last character.
func (b *Builder) IsSpaced() bool { return b.pendingSpace }

// Lines appends s, each of whose lines ends a block except the last.
func (b *Builder) Lines(s []byte) {
	for {
		i := indexLineEnd(s)
		if i < 0 {
			b.Text(s)
			return
		}
		b.Text(s[:i])
		b.Break()
		s = s[i+1:]
	}
}

func indexLineEnd(s []byte) int {
	for i, c := range s {
		if c == '\n' || c == '\r' {
			return i
		}
	}
	return -1
}

// Break ends the current block.
func (b *Builder) Break() {
	if b.inBlock {
		b.buf = append(b.buf, pipeline.BlockEnd)
	}
	b.inBlock, b.pendingSpace = false, false
}

// Block adds s as a block of its own, or the rest of the present one.
func (b *Builder) Block(s string) {
	b.Text([]byte(s))
	b.Break()
}

// ItemStart begins an item. Items may be nested.
func (b *Builder) ItemStart() {
	b.Break()
	b.buf = append(b.buf, pipeline.ItemStart)
	b.openItems = append(b.openItems, len(b.keys))
	b.keys = append(b.keys, 0)
}

// SetKey sets the key of the innermost open item, if there is one.
func (b *Builder) SetKey(k pipeline.Key) {
	if n := len(b.openItems); n > 0 {
		b.keys[b.openItems[n-1]] = k
	}
}

// ItemEnd ends the innermost item, if there is one.
func (b *Builder) ItemEnd() {
	b.Break()
	last := len(b.openItems) - 1
	if last < 0 {
		return
	}
	b.openItems = b.openItems[:last]
	if n := len(b.buf); b.buf[n-1] == pipeline.ItemStart {
		b.buf, b.keys = b.buf[:n-1], b.keys[:len(b.keys)-1]
		return
	}
	b.buf = append(b.buf, pipeline.ItemEnd)
}

// Append appends content, the Content of another text.
func (b *Builder) Append(content string) {
	for content != "" {
		end := strings.IndexAny(content, Borders)
		if end < 0 {
			b.Text([]byte(content))
			return
		}
		b.Text([]byte(content[:end]))
		b.Border(content[end])
		content = content[end+1:]
	}
}

// Borders are the marks between blocks.
const Borders = string(pipeline.BlockEnd) + string(pipeline.ItemStart) + string(pipeline.ItemEnd)

// Blank reports whether content, that of a pipeline.Text, has no text.
func Blank(content string) bool { return strings.Trim(content, Borders+" ") == "" }

// Border appends a mark, which is one of Borders.
func (b *Builder) Border(mark byte) {
	switch mark {
	case pipeline.ItemStart:
		b.ItemStart()
	case pipeline.ItemEnd:
		b.ItemEnd()
	default:
		b.Break()
	}
}

// Len is the size of the text so far, in bytes.
func (b *Builder) Len() int { return len(b.buf) }

// InBlock reports whether the last block has text and no end.
func (b *Builder) InBlock() bool { return b.inBlock }

// Content ends what is open and returns the text.
func (b *Builder) Content() string {
	b.Break()
	for len(b.openItems) > 0 {
		b.ItemEnd()
	}
	return string(b.buf)
}

// Keys returns the keys of the items, or nil where none has one. A key of several items identifies none. Content
// is called before.
func (b *Builder) Keys() []pipeline.Key {
	if !slices.ContainsFunc(b.keys, func(k pipeline.Key) bool { return k != 0 }) {
		return nil
	}
	count := make(map[pipeline.Key]int, len(b.keys))
	for _, k := range b.keys {
		count[k]++
	}
	for i, k := range b.keys {
		if count[k] > 1 {
			b.keys[i] = 0
		}
	}
	return b.keys
}

// Reuse makes b, which is empty, use memory. Nothing else may use it until the text is read.
func (b *Builder) Reuse(memory []byte) { b.buf = memory[:0] }

// Memory returns the memory of the text so far, for Reuse.
func (b *Builder) Memory() []byte { return b.buf }

// Line returns s as one line: white space collapsed, marks and control characters dropped.
func Line(s string) string {
	var b Builder
	b.Text([]byte(s))
	return strings.TrimSuffix(b.Content(), string(pipeline.BlockEnd))
}

// Truncate returns the beginning of s, at most n bytes of valid UTF-8.
func Truncate(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// LanguageTag returns s if it looks like a BCP 47 tag, or like a locale such as en_US, or "".
func LanguageTag(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "-")
	primary, _, _ := strings.Cut(s, "-")
	if len(primary) < 2 || len(primary) > 3 || len(s) > 35 {
		return ""
	}
	for _, c := range s {
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return ""
		}
	}
	return s
}

// Position names the place at offset in body for the user, such as "line 3, column 5". A column
// counts characters.
func Position(body []byte, offset int) string {
	offset = min(max(offset, 0), len(body))
	line := bytes.Count(body[:offset], []byte{'\n'}) + 1
	start := bytes.LastIndexByte(body[:offset], '\n') + 1
	return fmt.Sprintf("line %d, column %d", line, utf8.RuneCount(body[start:offset])+1)
}

// LineFeeds returns body with line feeds in place of carriage returns that end lines on their own.
func LineFeeds(body []byte) []byte {
	copied := false
	for i := 0; ; i++ {
		next := bytes.IndexByte(body[i:], '\r')
		if next < 0 {
			return body
		}
		if i += next; i+1 == len(body) || body[i+1] != '\n' {
			if !copied {
				body, copied = bytes.Clone(body), true
			}
			body[i] = '\n'
		}
	}
}

// TooLarge is the failed check of a page whose text is larger than any may be.
func TooLarge() error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the text of the page is larger than 2 MiB"}
}

// Unreadable is the failed check of a page that is not what its type says.
func Unreadable(format string, args ...any) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf(format, args...)}
}
