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
	body := []byte("# One\n\ntext *em*\n\n# Two\n\n- a\n- b\n")
	for sel, want := range map[string]string{"em": "em\n", "//li[2]": "\x02b\n\x03", "h1": "One\nTwo\n"} {
		got, err := New().Read(t.Context(), pipeline.Raw{Body: body}, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector(sel)}})
		if err != nil || got.Content != want || got.Title != "One" {
			t.Errorf("%s: got %q (%q), %v, want %q", sel, got.Content, got.Title, err, want)
		}
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

func FuzzRead(f *testing.F) {
	f.Add([]byte("# a\n\n- b\n\n| c |\n|---|\n<p>d\n"), "li")
	f.Fuzz(func(t *testing.T, body []byte, sel string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{})
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector(sel)}})
	})
}

var benchPage = []byte(strings.Repeat("# A heading\n\nSome *text* with `code` and a [link](https://example.com/), which goes on for a while.\n\n- one\n- two\n\n", 100))

// BenchmarkRead stands beside BenchmarkBare, which only makes the HTML.
func BenchmarkRead(b *testing.B) {
	r := New()
	b.SetBytes(int64(len(benchPage)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), pipeline.Raw{Body: benchPage}, pipeline.View{}); err != nil {
			b.Fatal(err)
		}
	}
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
