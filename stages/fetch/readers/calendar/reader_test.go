package calendar

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
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
	readertest.Views(t, New(), newRaw(sampleEvent), map[[2]string]string{
		{"re:^Start: (.*)", ""}:          "<<Start: 2026-11-24 19:00 UTC|>>",
		{"lines:3", ""}:                  "<<Council|>>",
		{"", "re:^(Location|Start): .*"}: "<<Council|>>",
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sampleEvent), "lines:3")
	f.Add([]byte("BEGIN:VCALENDAR\r\nSUMMARY;A=\"b:c\":d\\n\r\n e\r\nDTSTART:2026\r\nEND:VCALENDAR"), "re:.")
	f.Fuzz(func(t *testing.T, body []byte, sel string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, pipeline.View{})
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body}, readertest.View(sel, ""))
	})
}

// BenchmarkRead has no bare tokenizer beside it: BenchmarkBare unfolds the lines.
func BenchmarkRead(b *testing.B) {
	readertest.Bench(b, New(), pipeline.Raw{Body: benchPage()}, pipeline.View{})
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
