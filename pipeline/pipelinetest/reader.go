package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// ReaderPages are the pages that TestReader reads.
type ReaderPages struct {
	// Samples must each give a text.
	Samples []pipeline.Raw
	// Golden is a folder of pages. Beside each of them, such as feed.xml, is what it gives:
	// feed.xml.want, in the form of Golden. Types has the content type of each extension (".xml").
	Golden string
	Types  map[string]string
	// Broken are invalid pages: each fails with FailUnreadable, and the reason says where.
	Broken []pipeline.Raw
	// Large returns an expensive page of about n bytes, Deep a page that is nested n deep. Nil
	// means that there are none.
	Large, Deep func(n int) pipeline.Raw
}

// Bounds that TestReader holds a reader to.
const (
	largePage = 10 << 20
	deepPage  = 1 << 20 // elements
	// maxAllocated is how much may be allocated for each byte of a page, in bytes.
	maxAllocated = 200
)

// positionPattern matches how a reason names a place.
var positionPattern = regexp.MustCompile(`\b(line|byte|offset|record) \d+`)

// TestReader checks that r keeps the contract of pipeline.Reader on pages, on what is left of them
// where they are cut off, and on nonsense: it does not panic, leaves its input alone, gives equal
// texts for equal input, and its texts follow the rules. Pages of 10 MiB, and pages that are
// nested a million deep, are read or refused in bounded memory, and not after the context ended.
func TestReader(t *testing.T, r pipeline.Reader, pages ReaderPages) {
	t.Helper()
	if len(r.ContentTypes()) == 0 {
		t.Error("the reader reads no content type")
	}
	for _, ct := range r.ContentTypes() {
		if ct != strings.ToLower(ct) || strings.ContainsAny(ct, "; ") || strings.Count(ct, "/") != 1 {
			t.Errorf("content type %q is not a media type in lower case without parameters", ct)
		}
	}
	for i, raw := range pages.Samples {
		text, err := r.Read(t.Context(), raw, pipeline.View{})
		if err != nil || text.Content == "" {
			t.Errorf("sample %d: got %q, %v, want a text", i, text.Content, err)
		}
		checkTruncated(t, r, raw)
	}
	if pages.Golden != "" {
		checkGolden(t, r, pages)
	}
	for _, raw := range pages.Broken {
		_, err := r.Read(t.Context(), raw, pipeline.View{})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != pipeline.FailUnreadable || !positionPattern.MatchString(e.Reason) {
			t.Errorf("%.200q: got %v, want the class %s and where it is wrong", raw.Body, err, pipeline.FailUnreadable)
		}
	}
	for _, nonsense := range []string{"", "\x00", "\xff\xfe\xfd", "\x02\x03\n\x02", "<", "</", "{", "%PDF-", "\u2028\u00a0\u200b", strings.Repeat("\x80<", 1000)} {
		for _, ct := range append(r.ContentTypes(), "") {
			CheckReader(t, r, pipeline.Raw{ContentType: ct, Body: []byte(nonsense)}, pipeline.View{})
		}
	}
	if pages.Large != nil {
		checkBounds(t, r, pages.Large(largePage))
	}
	if pages.Deep != nil {
		checkBounds(t, r, pages.Deep(deepPage))
	}
}

// checkTruncated checks raw cut off at several places.
func checkTruncated(t *testing.T, r pipeline.Reader, raw pipeline.Raw) {
	t.Helper()
	for n := range 9 {
		part := raw
		part.Body = raw.Body[:len(raw.Body)*n/8]
		CheckReader(t, r, part, pipeline.View{})
	}
}

// checkBounds checks how an expensive page is read: in bounded memory, and not after the context ended.
func checkBounds(t *testing.T, r pipeline.Reader, raw pipeline.Raw) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := r.Read(t.Context(), raw, pipeline.View{})
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / uint64(len(raw.Body)); per > maxAllocated {
		t.Errorf("%.50q, of %d bytes: %d bytes were allocated for each; at most %d", raw.Body, len(raw.Body), per, maxAllocated)
	}
	if e, ok := errors.AsType[*pipeline.FetchError](err); err == nil && len(text.Content) > pipeline.MaxText ||
		err != nil && (!ok || e.Class != pipeline.FailTooLarge && e.Class != pipeline.FailUnreadable) {
		t.Errorf("%.50q, of %d bytes: got %d bytes, %v", raw.Body, len(raw.Body), len(text.Content), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, raw, pipeline.View{}); err == nil {
		t.Errorf("%.50q, of %d bytes: it was read after the context had ended", raw.Body, len(raw.Body))
	}
}

// checkGolden compares the texts of the pages of a folder with what they should give.
func checkGolden(t *testing.T, r pipeline.Reader, pages ReaderPages) {
	t.Helper()
	tested := 0
	for ext, contentType := range pages.Types {
		names, err := filepath.Glob(filepath.Join(pages.Golden, "*"+ext))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tested++
			raw := pipeline.Raw{URL: "https://example.com/", ContentType: contentType, Body: body}
			text, err := r.Read(t.Context(), raw, pipeline.View{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want, err := os.ReadFile(name + ".want")
			if got := Golden(text); err != nil || got != string(want) {
				t.Errorf("%s.want: %v; got\n%s\nwant\n%s", name, err, got, want)
			}
			checkTruncated(t, r, raw)
		}
	}
	if tested == 0 {
		t.Errorf("there is no page in %s", pages.Golden)
	}
}

// Golden writes text for people: its title and language, if any, and then a line for each block.
// Items are set in by two spaces, and a line with a hyphen begins one.
func Golden(text pipeline.Text) string {
	var b strings.Builder
	if text.Title != "" {
		fmt.Fprintf(&b, "title: %s\n", text.Title)
	}
	if text.Language != "" {
		fmt.Fprintf(&b, "language: %s\n", text.Language)
	}
	indent := ""
	for _, r := range text.Content {
		switch r {
		case pipeline.ItemStart:
			b.WriteString(indent + "-\n")
			indent += "  "
		case pipeline.ItemEnd:
			indent = strings.TrimSuffix(indent, "  ")
		case pipeline.BlockEnd:
			b.WriteByte('\n')
		default:
			if s := b.String(); s == "" || s[len(s)-1] == '\n' {
				b.WriteString(indent)
			}
			b.WriteRune(r)
		}
	}
	return b.String()
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
	if !reflect.DeepEqual(first, second) || (err == nil) != (err2 == nil) {
		t.Errorf("%.200q: two readings differ:\n%.200q, %v\n%.200q, %v", before, first.Content, err, second.Content, err2)
	}
	if err != nil {
		return pipeline.Text{}
	}
	if err := CheckContent(first.Content); err != nil {
		t.Errorf("%.200q: %v in %.500q", before, err, first.Content)
	}
	at := 0
	for _, item := range first.Items {
		if item.Start < at || item.End <= item.Start || item.End > len(first.Content) {
			t.Errorf("%.200q: item %q is at %d to %d of %d bytes, after %d", before, item.ID, item.Start, item.End, len(first.Content), at)
			break
		}
		if text := first.Content[item.Start:item.End]; text[0] != pipeline.ItemStart || text[len(text)-1] != pipeline.ItemEnd || CheckContent(text) != nil {
			t.Errorf("%.200q: the text of item %q is no item: %.200q", before, item.ID, text)
		}
		at = item.End
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
