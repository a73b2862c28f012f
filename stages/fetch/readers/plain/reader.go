// Package plain reads pages of plain text.
package plain

import (
	"bytes"
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// minWrappedLine is how long a line must be, in characters, to go on in the next one.
const minWrappedLine = 60

// linesPerCheck is how many lines are read between two looks at the context.
const linesPerCheck = 4096

// Reader reads plain text in UTF-8. A line is a block, but one of 60 and more characters goes on
// in the next, unless that is blank.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns text/plain. It reads all other types of text that have no reader of their
// own.
func (Reader) ContentTypes() []string { return []string{"text/plain"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "plain/1" }

// Read returns the text of view, whose line ranges and regular expressions count. It returns
// ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	wanted, err := selector.NewText(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	var b blocks.Builder
	rest := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	for n := 1; len(rest) > 0; n++ {
		if n%linesPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		var line []byte
		line, rest = cutLine(rest)
		if wanted.All() {
			writeLine(&b, line)
		} else {
			parts, err := wanted.Line(ctx, n, string(line))
			if err != nil {
				return pipeline.Text{}, err
			}
			for i, part := range parts {
				if i > 0 || len(part) < len(line) {
					b.Break() // it does not belong to what stands before
				}
				writeLine(&b, []byte(part))
			}
		}
		if b.Len() > pipeline.MaxText {
			return pipeline.Text{}, blocks.TooLarge()
		}
	}
	if err := wanted.End(); err != nil {
		return pipeline.Text{}, err
	}
	return pipeline.Text{Content: b.Content(), Language: blocks.LanguageTag(raw.ContentLanguage)}, nil
}

func writeLine(b *blocks.Builder, line []byte) {
	line = bytes.TrimRightFunc(line, unicode.IsSpace)
	b.Text(line)
	if utf8.RuneCount(line) < minWrappedLine {
		b.Break()
	} else {
		b.Text([]byte{' '})
	}
}

// cutLine splits s behind its first line, which is returned without its end.
func cutLine(s []byte) (line, rest []byte) {
	i := bytes.IndexAny(s, "\n\r\f\v")
	if i < 0 {
		return s, nil
	}
	if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
		return s[:i], s[i+2:]
	}
	return s[:i], s[i+1:]
}
