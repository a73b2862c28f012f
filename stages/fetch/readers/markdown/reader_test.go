package markdown

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/yuin/goldmark"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
)

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Golden: "testdata", Types: map[string]string{".md": "text/markdown"},
		Samples: []pipeline.Raw{{Body: []byte("\ufeff# a")}, {Body: []byte("---\ntitle: x\n---\ntext")}},
		Large:   func(n int) pipeline.Raw { return pipeline.Raw{Body: []byte(strings.Repeat("* a\n", n/4))} },
		Deep:    func(n int) pipeline.Raw { return pipeline.Raw{Body: []byte(strings.Repeat("> ", n) + "a")} },
	})
}

func TestViews(t *testing.T) {
	page := pipeline.Raw{Body: []byte("# One\n\ntext *em*\n\n# Two\n\n- a\n- b\n")}
	readertest.Views(t, New(), page, map[[2]string]string{{"em", ""}: "em|", {"//li[2]", ""}: "<b|>", {"h1", ""}: "One|Two|"})
	if got, err := New().Read(t.Context(), page, readertest.View("em", "")); err != nil || got.Title != "One" {
		t.Errorf("got the title %q, %v, want that of the whole page", got.Title, err)
	}
}

// Pages that make parsers of Markdown slow are read or refused.
func TestBombs(t *testing.T) {
	for _, s := range []string{"[", "![", "*a_", "`", "> ", "- ", "<a", "[a](", "| a |\n|---|\n", "\\`", "_**"} {
		body := []byte(strings.Repeat(s, 20_000/len(s)))
		_, err := New().Read(t.Context(), pipeline.Raw{Body: body}, pipeline.View{})
		if e, ok := errors.AsType[*pipeline.FetchError](err); err != nil && (!ok || e.Class != pipeline.FailTooLarge && e.Class != pipeline.FailUnreadable) {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

// costlyPages are pages of which the parser would take minutes, or all memory.
var costlyPages = []struct{ page, want string }{
	{"a\n\n" + strings.Repeat(">", 400_000) + " x", "line 3: it opens more than 100"},
	{strings.Repeat("- ", 100_000) + "x", "line 1: it opens more than 100"},
	{strings.Repeat("1. ", 100_000) + "x", "line 1: it opens more than 100"},
	{strings.Repeat("> - 1) \t+ ", 50_000) + "x", "line 1: it opens more than 100"},
	{nestedLists(1000), "line 101: it opens more than 100"},
	{"a\n\n" + strings.Repeat("[a](", 100_000), "line 3: the paragraph that begins here has too many brackets"},
	{"- a\n- " + strings.Repeat("![a](b (\n  ", 100_000), "line 2: the paragraph that begins here has too many brackets"},
	{"> " + strings.Repeat("*a_", 200_000), "line 1: the paragraph that begins here has too many brackets and emphasis marks"},
	{strings.Repeat("[a]: b\n", 250_000), "line 1: the paragraph that begins here has too many brackets"},
	{strings.Repeat(strings.Repeat("[a](", 4000)+"\n\n", 30), "line 31: the paragraph that begins here has too many brackets"},
	{strings.Repeat("|a", 3000) + "|\n" + strings.Repeat("|-", 3000) + "|\n" + strings.Repeat("|\n", 900_000), "line 85: the tables up to here have more than 250000 cells"},
	{nestedLists(90) + strings.Repeat("\n", 1_000_000), "too many blank lines up to here are within lists"},
	{"> " + strings.Repeat("- ", 90) + "x\n" + strings.Repeat(">\n", 900_000), "too many blank lines up to here are within lists"},
}

// nestedLists returns a list in a list, n deep.
func nestedLists(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

func TestBombsAreRefused(t *testing.T) {
	for _, tc := range costlyPages {
		_, err := New().Read(t.Context(), pipeline.Raw{Body: []byte(tc.page)}, pipeline.View{})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != pipeline.FailUnreadable || !strings.Contains(e.Reason, tc.want) {
			t.Errorf("%.40q: got %v, want %q", tc.page, err, tc.want)
		}
	}
}

// Large pages such as people and programs write are within the bounds.
func TestLargePagesAreRead(t *testing.T) {
	for _, page := range []string{
		strings.Repeat("- [text](https://example.com/a_b) *the* __best__ thing\n", 30_000),
		"| a | b |\n|---|---|\n" + strings.Repeat("| [text](https://example.com/a_b) | *b* |\n", 20_000),
		"```\n" + strings.Repeat("[1, [2, \"a_b\"]],\n", 50_000) + "```\n",
		strings.Repeat("[1.2.3]: https://example.com/compare/v1...v2\n", 4000),
		strings.Repeat("- ", 1000) + "\n\n" + strings.Repeat("*", 1000) + "\n\n" + strings.Repeat(" ", 1000) + "code\n",
		strings.Repeat("> ", 100) + "x\n",
	} {
		if _, err := New().Read(t.Context(), pipeline.Raw{Body: []byte(page)}, pipeline.View{}); err != nil {
			t.Errorf("%.40q: %v", page, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("# a\n\n- b\n\n| c |\n|---|\n<p>d\n"), "li")
	for _, s := range []string{">", "- ", "1. ", "> 1) ", "[a](", "[a]: b\n", "*a **b ", "*a_", "|a|\n|-|\n", "<a ", "`", "<div>\n"} {
		f.Add([]byte(strings.Repeat(s, 200)+" x"), "li")
	}
	f.Fuzz(func(t *testing.T, body []byte, sel string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{})
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, readertest.View(sel, ""))
	})
}

var benchPage = []byte(strings.Repeat("# A heading\n\nSome *text* with `code` and a [link](https://example.com/), which goes on for a while.\n\n- one\n- two\n\n", 100))

// BenchmarkRead stands beside BenchmarkBare, which only makes the HTML.
func BenchmarkRead(b *testing.B) {
	readertest.Bench(b, New(), pipeline.Raw{Body: benchPage}, pipeline.View{})
}

func BenchmarkBare(b *testing.B) {
	b.SetBytes(int64(len(benchPage)))
	b.ReportAllocs()
	for b.Loop() {
		if err := goldmark.Convert(bytes.Clone(benchPage), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
