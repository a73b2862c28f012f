package pipelinetest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// TestReader checks that r keeps the contract of pipeline.Reader on samples, on what is
// left of them where they are cut off, and on nonsense: it does not panic, leaves its
// input alone, gives equal texts for equal input, and its texts follow the rules. Each
// sample must give a text.
func TestReader(t *testing.T, r pipeline.Reader, samples ...pipeline.Raw) {
	t.Helper()
	if len(r.ContentTypes()) == 0 {
		t.Error("the reader reads no content type")
	}
	for _, ct := range r.ContentTypes() {
		if ct != strings.ToLower(ct) || strings.ContainsAny(ct, "; ") || strings.Count(ct, "/") != 1 {
			t.Errorf("content type %q is not a media type in lower case without parameters", ct)
		}
	}
	for i, raw := range samples {
		text, err := r.Read(t.Context(), raw, pipeline.View{})
		if err != nil || text.Content == "" {
			t.Errorf("sample %d: got %q, %v, want a text", i, text.Content, err)
		}
		for n := range 9 {
			part := raw
			part.Body = raw.Body[:len(raw.Body)*n/8]
			CheckReader(t, r, part, pipeline.View{})
		}
	}
	for _, nonsense := range []string{"", "\x00", "\xff\xfe\xfd", "\x02\x03\n\x02", "<", "</", "{", "%PDF-", "\u2028\u00a0\u200b", strings.Repeat("\x80<", 1000)} {
		for _, ct := range append(r.ContentTypes(), "") {
			CheckReader(t, r, pipeline.Raw{ContentType: ct, Body: []byte(nonsense)}, pipeline.View{})
		}
	}
}

// CheckReader reads raw twice and checks what TestReader checks of one input. It returns
// the text; fuzz targets use it.
func CheckReader(t *testing.T, r pipeline.Reader, raw pipeline.Raw, view pipeline.View) pipeline.Text {
	t.Helper()
	before := string(raw.Body)
	first, err := r.Read(t.Context(), raw, view)
	if string(raw.Body) != before {
		t.Errorf("%.200q: the reader wrote into its input", before)
	}
	second, err2 := r.Read(t.Context(), raw, view)
	if first != second || (err == nil) != (err2 == nil) {
		t.Errorf("%.200q: two readings differ:\n%.200q, %v\n%.200q, %v", before, first.Content, err, second.Content, err2)
	}
	if err != nil {
		return pipeline.Text{}
	}
	if err := CheckContent(first.Content); err != nil {
		t.Errorf("%.200q: %v in %.500q", before, err, first.Content)
	}
	for name, s := range map[string]string{"title": first.Title, "language": first.Language} {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("%.200q: the %s %.200q is not clean", before, name, s)
		}
	}
	return first
}

// CheckContent returns what is wrong with content as a pipeline.Text's Content, or nil.
func CheckContent(content string) error {
	if !utf8.ValidString(content) {
		return fmt.Errorf("it is not valid UTF-8")
	}
	items, last := 0, rune(pipeline.BlockEnd)
	for i, r := range content {
		border := last == pipeline.BlockEnd || last == pipeline.ItemStart || last == pipeline.ItemEnd
		switch {
		case r == pipeline.ItemStart:
			items++
			if !border {
				return fmt.Errorf("an item starts within a block, at byte %d", i)
			}
		case r == pipeline.ItemEnd:
			items--
			if items < 0 || !border {
				return fmt.Errorf("an item ends where none is open or within a block, at byte %d", i)
			}
		case r == pipeline.BlockEnd:
			if border || last == ' ' {
				return fmt.Errorf("a block is empty or ends with a space, at byte %d", i)
			}
		case r == ' ':
			if border || last == ' ' {
				return fmt.Errorf("a block begins with a space or has two in a row, at byte %d", i)
			}
		case unicode.IsSpace(r), unicode.IsControl(r):
			return fmt.Errorf("it holds the character %U, at byte %d", r, i)
		}
		last = r
	}
	switch {
	case items != 0:
		return fmt.Errorf("%d items are not ended", items)
	case last != pipeline.BlockEnd && last != pipeline.ItemEnd:
		return fmt.Errorf("the last block is not ended")
	}
	return nil
}
