package render

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestVisibleSpans(t *testing.T) {
	spans := []Span{{Text: "a "}, {Text: "b", Changed: true}, {Text: "c", Keyword: true, Changed: true}, {Text: " d", Keyword: true}}
	literal := func(s string) string { return s }
	for event, want := range map[pipeline.Event]string{
		pipeline.Added:   "\\+ k\n> a b**c d**",
		pipeline.Removed: "\\- k\n> a ~~b**c**~~ **d**",
	} {
		m := Message{Lines: []Line{{Event: event, Keywords: []string{"k"}, Spans: spans}}}
		if got := AsMarkdown(m, literal); got != want {
			t.Errorf("%s: got %q, want %q", event, got, want)
		}
	}
}
