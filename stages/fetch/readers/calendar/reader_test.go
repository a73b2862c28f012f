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
			newRaw("SUMMARY:a"), newRaw("<html></html>"), newRaw("BEGIN:VEVENT\nSUMMARY:a\nEND:VEVENT"),
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

// A line that is not valid costs no other, and is said.
func TestOddLines(t *testing.T) {
	calendar := func(lines ...string) string {
		return "BEGIN:VCALENDAR\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCALENDAR\r\n"
	}
	event := func(lines ...string) string {
		return "BEGIN:VEVENT\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT"
	}
	for _, tc := range []struct{ name, body, want, passed string }{
		{"lines that end in carriage returns", strings.ReplaceAll(calendar(event("SUMMARY:a\r\n b")), "\r\n", "\r"), "<<ab|>>", ""},
		{"an unfolded line", calendar(event("DESCRIPTION:Bring", "a lamp, please", "LOCATION:Hall"), event("SUMMARY:b")), "<<Bring|a lamp, please|Location: Hall|><b|>>",
			"a line that is not folded was joined with the one before, in line 4"},
		{"an unfolded address", calendar(event("DESCRIPTION:See", "the page http://a.example/", "SUMMARY:b")), "<<See|the page http://a.example/|b|>>",
			"a line that is not folded was joined with the one before, in line 4"},
		{"a blank line within a folded property", calendar(event("DESCRIPTION:Bring", "", "  a lamp", "SUMMARY:b")), "<<Bring|a lamp|b|>>", "a line that is not folded was joined with the one before, in line 4"},
		{"a blank line behind a name", calendar(event("LOCATION", "", " :Hall", "SUMMARY:b")), "<<Location: Hall|b|>>", "a blank line within a property was passed over, in line 4"},
		{"no name", calendar(event(":x", "SUMMARY:b")), "<<b|>>", "a line without name and value was passed over, in line 3"},
		{"a line behind a date", calendar(event("DTSTART:20261121", "x y", "SUMMARY:b")), "<<Start: 2026-11-21|b|>>", "a line without name and value was passed over, in line 4"},
		{"behind the end", calendar(event("SUMMARY:b")) + "x\r\nSUMMARY:c\r\n", "<<b|>>", "2 lines outside of the calendar were passed over, the first in line 6"},
		{"before the begin", "warning: x\r\n" + calendar(event("SUMMARY:b")), "<<b|>>", "a line outside of the calendar was passed over, in line 1"},
		{"two calendars", calendar(event("SUMMARY:b")) + calendar(event("SUMMARY:c")), "<<b|>><<c|>>", ""},
		{"a misspelt end", calendar("BEGIN:VEVENT", "SUMMARY:b", "END:VEVNT", event("SUMMARY:c")), "<<b|><c|>>",
			"an end with an unknown name was taken for that of the present entry, in line 4"},
		{"a missing end", calendar("BEGIN:VEVENT", "SUMMARY:b", event("SUMMARY:c")), "<<b|><c|>>", "an entry without an end was ended, in line 4"},
		{"a missing end of a part", calendar(event("SUMMARY:b", "BEGIN:VALARM", "SUMMARY:no"), event("SUMMARY:c")), "<<b|><c|>>", "an entry without an end was ended, in line 6"},
		{"an end too many", calendar(event("SUMMARY:b", "END:VALARM", "LOCATION:Hall"), event("SUMMARY:c")), "<<b|Location: Hall|><c|>>",
			"an end of what is not open was passed over, in line 4"},
		{"it breaks off", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:b", "<<b|>>", "the page breaks off within a calendar, in line 3"},
		{"blanks", calendar("BEGIN:VEVENT ", "SUMMARY:b", "END:VEVENT "), "<<b|>>", ""},
	} {
		got, err := New().Read(t.Context(), newRaw(tc.body), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, text, err, tc.want)
		}
		if passed := strings.Join(got.Passed, "; "); passed != tc.passed {
			t.Errorf("%s: passed over: %q, want %q", tc.name, passed, tc.passed)
		}
	}
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
		c := components{body: body}
		for rest, n := string(body), 1; len(rest) > 0; {
			_, rest, n = c.unfoldLine(rest, n)
		}
	}
}

func benchPage() []byte {
	return []byte("BEGIN:VCALENDAR\r\n" + strings.Repeat("BEGIN:VEVENT\r\nUID:1@example.com\r\nSUMMARY:Council of the gods\r\nDTSTART:20261124T190000Z\r\nLOCATION:Hall A\r\nEND:VEVENT\r\n", 300) + "END:VCALENDAR\r\n")
}
