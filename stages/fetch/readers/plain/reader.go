// Package plain reads pages of plain text.
package plain

import (
	"bytes"
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// wrapped is how long a line must be, in characters, to go on in the next one.
const wrapped = 60

// linesPerCheck is how many lines are read between two looks at the context.
const linesPerCheck = 4096

// Reader reads plain text and Markdown in UTF-8. A line is a block, but one of 60 and
// more characters goes on in the next, unless that is blank.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns text/plain and text/markdown.
func (Reader) ContentTypes() []string { return []string{"text/plain", "text/markdown"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "plain/1" }

// Read returns the text. It has no elements that a selector could match: a view that
// selects fails with FailSelectorGone, and there is nothing to remove.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	if len(view.Select) > 0 {
		return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailSelectorGone, Reason: "plain text has nothing that a selector could match"}
	}
	var b blocks.Builder
	rest := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	for n := 1; len(rest) > 0; n++ {
		if n%linesPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		var line []byte
		line, rest = cutLine(rest)
		line = bytes.TrimRightFunc(line, unicode.IsSpace)
		if len(line) == 0 {
			b.Break()
			continue
		}
		b.Text(line)
		if utf8.RuneCount(line) < wrapped {
			b.Break()
		} else {
			b.Text([]byte{' '})
		}
		if b.Len() > pipeline.MaxText {
			return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the text is larger than 2 MiB"}
		}
	}
	return pipeline.Text{Content: b.Content(), Language: blocks.LanguageTag(raw.ContentLanguage)}, nil
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
