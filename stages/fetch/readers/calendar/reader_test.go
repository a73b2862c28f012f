package calendar

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func newRaw(body string) pipeline.Raw {
	return pipeline.Raw{ContentType: "text/calendar", Body: []byte(body)}
}

const sampleEvent = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Council\nDTSTART:20261124T190000Z\nLOCATION:Hall A\nEND:VEVENT\nEND:VCALENDAR\n"

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Golden: "testdata", Types: map[string]string{".ics": "text/calendar"},
		Samples: []pipeline.Raw{newRaw(sampleEvent)},
		Broken: []pipeline.Raw{
			newRaw("BEGIN:VCALENDAR\nSUMMARY"), newRaw("SUMMARY:a"), newRaw("BEGIN:VCALENDAR\n"), newRaw("BEGIN:VCALENDAR\nEND:VEVENT\n"),
			newRaw("BEGIN:VCALENDAR\nEND:VCALENDAR\nSUMMARY:a"), newRaw("<html></html>"),
		},
		Large: func(n int) pipeline.Raw {
			return newRaw("BEGIN:VCALENDAR\n" + strings.Repeat("BEGIN:VEVENT\nSUMMARY:a\nUID:1\nEND:VEVENT\n", n/42) + "END:VCALENDAR\n")
		},
		Deep: func(n int) pipeline.Raw { return newRaw(strings.Repeat("BEGIN:VCALENDAR\n", n)) },
	})
}

func TestViews(t *testing.T) {
	for sel, want := range map[string]string{
		"re:^Start: (.*)": "\x02\x02Start: 2026-11-24 19:00 UTC\n\x03\x03",
		"lines:3":         "\x02\x02Council\n\x03\x03",
	} {
		got, err := New().Read(t.Context(), newRaw(sampleEvent), pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector(sel)}})
		if err != nil || got.Content != want {
			t.Errorf("%s: got %q, %v, want %q", sel, got.Content, err, want)
		}
	}
	got, err := New().Read(t.Context(), newRaw(sampleEvent), pipeline.View{Remove: []pipeline.Selector{{Regexp: "^(Location|Start): .*"}}})
	if err != nil || got.Content != "\x02\x02Council\n\x03\x03" {
		t.Errorf("remove: got %q, %v", got.Content, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sampleEvent), "lines:3")
	f.Add([]byte("BEGIN:VCALENDAR\r\nSUMMARY;A=\"b:c\":d\\n\r\n e\r\nDTSTART:2026\r\nEND:VCALENDAR"), "re:.")
	f.Fuzz(func(t *testing.T, body []byte, sel string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{})
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector(sel)}})
	})
}

// BenchmarkRead has no bare tokenizer beside it: BenchmarkBare unfolds the lines.
func BenchmarkRead(b *testing.B) {
	body := benchPage()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New().Read(b.Context(), pipeline.Raw{Body: body}, pipeline.View{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	body := benchPage()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for rest, n := body, 1; len(rest) > 0; {
			_, rest, n = unfoldLine(rest, n)
		}
	}
}

func benchPage() []byte {
	return []byte("BEGIN:VCALENDAR\r\n" + strings.Repeat("BEGIN:VEVENT\r\nUID:1@example.com\r\nSUMMARY:Council of the gods\r\nDTSTART:20261124T190000Z\r\nLOCATION:Hall A\r\nEND:VEVENT\r\n", 300) + "END:VCALENDAR\r\n")
}
