// Package csv reads tables: comma-separated and tab-separated values.
package csv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"

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
func (Reader) Extractor() string { return "csv/3" }

// Read returns the text of view. A line range names the records that begin on its lines; a
// regular expression names what it matches in each field. It returns ctx's error if that is
// done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	wanted, err := selector.NewText(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	body := blocks.LineFeeds(bytes.TrimPrefix(raw.Body, []byte("\ufeff")))
	var passed blocks.Passed
	next := commaSeparated(ctx, body, &passed)
	if raw.MediaType() == tsvType {
		next = tabSeparated(body)
	}
	var b blocks.Builder
	if wanted.All() {
		b.Reuse(make([]byte, 0, min(len(body)+len(body)/8, pipeline.MaxText))) // the text is about as long
	}
	keyColumn, named := 0, false
	firsts := make(map[uint64]struct{}, min(bytes.Count(body, []byte{'\n'}), recordsPerCheck)) // hashes of the values of the first column
	unique := true
	for n := 1; ; n++ {
		if n%recordsPerCheck == 0 && ctx.Err() != nil {
			return pipeline.Text{}, ctx.Err()
		}
		record, line, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return pipeline.Text{}, err
		}
		if n == 1 {
			keyColumn, named = findKeyColumn(record)
		}
		b.ItemStart()
		if n > 1 && keyColumn < len(record) {
			id := record[keyColumn]
			b.SetKey(pipeline.NewKey("", id))
			if !named && unique {
				firsts[xxhash.Sum64String(id)] = struct{}{}
				unique = id != "" && len(firsts) == n-1
			}
		}
		for _, field := range record {
			if err := wanted.Blocks(ctx, line, field, b.Block); err != nil {
				return pipeline.Text{}, err
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
	t := pipeline.Text{Content: b.Content(), Language: blocks.LanguageTag(raw.ContentLanguage), Passed: passed.Sentences()}
	if unique {
		t.Keys = b.Keys()
	}
	return t, nil
}

// keyColumns are the names of columns by which a record is known. The first one counts that there is.
var keyColumns = []string{"id", "guid", "uuid", "key", "sku", "url", "link"}

// findKeyColumn returns the column that header names as what a record is known by. Without one the first
// column is it, if all its values differ.
func findKeyColumn(header []string) (column int, named bool) {
	for _, name := range keyColumns {
		for i, field := range header {
			if strings.EqualFold(strings.TrimSpace(field), name) {
				return i, true
			}
		}
	}
	return 0, false
}

// commaSeparated returns a function that returns the records of body and the lines that they
// begin on. A record whose quotes are out of place is read line by line, and noted.
func commaSeparated(ctx context.Context, body []byte, passed *blocks.Passed) func() ([]string, int, error) {
	comma := separator(body)
	in := bufio.NewReader(nil)
	var r *csv.Reader
	start, line := 0, 1 // where r began
	restart := func(at int) {
		line += bytes.Count(body[start:at], []byte{'\n'})
		start = at
		in.Reset(bytes.NewReader(body[at:]))
		r = csv.NewReader(in)
		r.FieldsPerRecord = -1
		r.ReuseRecord = true
		r.Comma = comma
		r.TrimLeadingSpace = comma != '\t' // before a quote, too
	}
	restart(0)
	return func() ([]string, int, error) {
		at := start + int(r.InputOffset())
		record, err := r.Read()
		if err == nil && len(record) > 0 {
			n, _ := r.FieldPos(0)
			return record, line + n - 1, nil
		}
		if _, odd := errors.AsType[*csv.ParseError](err); odd {
			if ctx.Err() != nil { // the record may have been read to the end of the page
				return nil, 0, ctx.Err()
			}
			for at < len(body) && (body[at] == '\n' || body[at] == '\r') {
				at++ // blank lines, which are no records
			}
			text, _, _ := bytes.Cut(body[at:], []byte{'\n'})
			passed.Note("a record with quotes out of place was read line by line", "records with quotes out of place were read line by line", body, at)
			restart(at)
			n := line
			restart(min(at+len(text)+1, len(body)))
			return splitOdd(strings.TrimSuffix(string(text), "\r"), comma), n, nil
		}
		return nil, 0, err
	}
}

// splitOdd returns the fields of a line whose quotes are out of place. Quotes at the beginning of a field, or behind
// blanks there, end where the next one stands alone, and all others are part of it. If they never end, no quote means
// anything.
func splitOdd(line string, comma rune) []string {
	var fields []string
	var field strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '"' && strings.HasPrefix(line[i+1:], `"`):
			field.WriteByte(c)
			i++
		case quoted && c == '"':
			quoted = false
		case !quoted && rune(c) == comma:
			fields = append(fields, field.String())
			field.Reset()
			begun = false
		case c == '"' && !begun:
			quoted, begun = true, true
			field.Reset()
		default:
			field.WriteByte(c)
			begun = begun || c != ' '
		}
	}
	if quoted {
		return strings.Split(line, string(comma))
	}
	return append(fields, field.String())
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
