// Package csv reads tables: comma-separated and tab-separated values.
package csv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// recordsPerCheck is how many records are read between two looks at the context.
const recordsPerCheck = 1024

// Reader reads tables in UTF-8. A record is an item and each of its fields a block. Fields of CSV
// are separated by commas, or by what the first line has more of: semicolons or tabs.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

const tsvType = "text/tab-separated-values"

// ContentTypes returns the media types of CSV and TSV.
func (Reader) ContentTypes() []string {
	return []string{"text/csv", "application/csv", "text/x-csv", tsvType}
}

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "csv/1" }

// Read returns the text of view. A line range names the records that begin on its lines; a
// regular expression names what it matches in each field. It returns ctx's error if that is
// done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	wanted, err := selector.NewText(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	next := commaSeparated(body)
	if mediaType, _, _ := mime.ParseMediaType(raw.ContentType); mediaType == tsvType {
		next = tabSeparated(body)
	}
	var b blocks.Builder
	for n := 1; ; n++ {
		if n%recordsPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		record, line, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return pipeline.Text{}, blocks.Unreadable("the page is not valid CSV: %v", err)
		}
		b.ItemStart()
		for _, field := range record {
			parts := []string{field}
			if !wanted.All() {
				if parts, err = wanted.Line(ctx, line, field); err != nil {
					return pipeline.Text{}, err
				}
			}
			for _, part := range parts {
				b.Text([]byte(part))
				b.Break()
			}
		}
		b.ItemEnd()
		if b.Len() > pipeline.MaxText {
			return pipeline.Text{}, blocks.TooLarge()
		}
	}
	if err := wanted.End(); err != nil {
		return pipeline.Text{}, err
	}
	return pipeline.Text{Content: b.Content(), Language: blocks.LanguageTag(raw.ContentLanguage)}, nil
}

// commaSeparated returns a function that returns the records of body and the lines that they
// begin on.
func commaSeparated(body []byte) func() ([]string, int, error) {
	r := csv.NewReader(bytes.NewReader(body))
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	r.Comma = separator(body)
	return func() ([]string, int, error) {
		record, err := r.Read()
		if err != nil || len(record) == 0 {
			return nil, 0, err
		}
		line, _ := r.FieldPos(0)
		return record, line, nil
	}
}

// separator returns what separates the fields of body.
func separator(body []byte) rune {
	line, _, _ := bytes.Cut(body, []byte{'\n'})
	best := ','
	for _, c := range ";\t" {
		if bytes.Count(line, []byte(string(c))) > bytes.Count(line, []byte(string(best))) {
			best = c
		}
	}
	return best
}

// tabSeparated does what commaSeparated does. In TSV nothing is quoted.
func tabSeparated(body []byte) func() ([]string, int, error) {
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, len(body)+1)
	n := 0
	return func() ([]string, int, error) {
		if !lines.Scan() {
			return nil, 0, io.EOF
		}
		n++
		return strings.Split(strings.TrimSuffix(lines.Text(), "\r"), "\t"), n, nil
	}
}
