// Package readertest has what the tests of readers share.
package readertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// View reads "a; b" as two selectors.
func View(sel, rem string) pipeline.View {
	list := func(s string) (out []pipeline.Selector) {
		for one := range strings.SplitSeq(s, "; ") {
			if one != "" {
				out = append(out, pipeline.ParseSelector(one))
			}
		}
		return out
	}
	return pipeline.View{Select: list(sel), Remove: list(rem)}
}

var show = strings.NewReplacer("\n", "|", "\x02", "<", "\x03", ">")

// Marked returns content with visible marks: | ends a block, < and > are around an item.
func Marked(content string) string { return show.Replace(content) }

// Views checks what r reads of page, by what to select and what to remove of it: "|" ends a
// block, and an item stands in angle brackets.
func Views(t *testing.T, r pipeline.Reader, page pipeline.Raw, want map[[2]string]string) {
	t.Helper()
	for v, want := range want {
		got, err := r.Read(t.Context(), page, View(v[0], v[1]))
		if s := Marked(got.Content); err != nil || s != want {
			t.Errorf("select %q, remove %q:\ngot  %s, %v\nwant %s", v[0], v[1], s, err, want)
		}
	}
}

// Gone checks the reasons for which r finds nothing of page, by selector.
func Gone(t *testing.T, r pipeline.Reader, page pipeline.Raw, want map[string]string) {
	t.Helper()
	for sel, want := range want {
		_, err := r.Read(t.Context(), page, View(sel, ""))
		if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailSelectorGone || e.Reason != want {
			t.Errorf("%s: got %v, want %s", sel, err, want)
		}
	}
}

// Bench measures how r reads page.
func Bench(b *testing.B, r pipeline.Reader, page pipeline.Raw, view pipeline.View) {
	b.SetBytes(int64(len(page.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), page, view); err != nil {
			b.Fatal(err)
		}
	}
}
