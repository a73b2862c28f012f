package blocks

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestBuilder(t *testing.T) {
	var b Builder
	b.ItemEnd() // none is open
	b.Text([]byte(" a "))
	b.Text([]byte("\t b"))
	b.Break()
	b.Break()
	b.ItemStart()
	b.ItemStart()
	b.ItemEnd() // empty
	b.Lines([]byte("c\n\n d\re"))
	b.ItemStart()
	b.Text([]byte("f\x02"))
	if got, want := b.Content(), "a b\n\x02c\nd\ne\n\x02f\n\x03\x03"; got != want || b.Len() != len(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLine(t *testing.T) {
	if got := Line(" a\n\u00a0b\x03 "); got != "a b" {
		t.Errorf("got %q", got)
	}
}

func FuzzBuilder(f *testing.F) {
	f.Add("a<b\u00a0c|d>", 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		var b Builder
		for i, part := range strings.SplitAfter(s, "|") {
			switch {
			case strings.Contains(part, "<"):
				b.ItemStart()
			case strings.Contains(part, ">"):
				b.ItemEnd()
			case i&1 == n&1:
				b.Break()
			}
			b.Text([]byte(part))
			b.Lines([]byte(part))
		}
		content := b.Content()
		if err := pipelinetest.CheckContent(content); err != nil {
			t.Errorf("%q: %v", content, err)
		}
		if open := strings.Count(content, string(pipeline.ItemStart)); open != strings.Count(content, string(pipeline.ItemEnd)) {
			t.Errorf("%q: %d items", content, open)
		}
	})
}
