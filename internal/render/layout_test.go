package render

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

func message() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://bot:pass@example.com/item?a=b", ID: "N1", Title: "Zeus & Co",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "out of stock", Text: "Out", Snippet: "Zeus. Out of stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "stock", Text: "Out", Snippet: "Zeus. Out of stock.", Offset: 6},
			{Event: pipeline.Removed, Keyword: "in stock", Text: "In", Snippet: "Zeus. In stock."},
		},
	}
}

func TestPlain(t *testing.T) {
	got := MessageOf(message(), Budget{}).Plain()
	want := "added: out of stock, stock; removed: in stock\nZeus & Co\nhttps://example.com/item?a=b\n\n" +
		"+ out of stock, stock: Zeus. Out of stock.\n- in stock: Zeus. In stock."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := pipeline.Notification{Type: pipeline.NotificationTypeHealth, Health: &pipeline.Health{
		Event: pipeline.HealthReceiverFailing, Receiver: &pipeline.Receiver{Sink: "ops"}, Count: 3, Since: at, Reason: "answered 500\n<b>",
	}}
	got = MessageOf(h, Budget{}).Plain()
	want = "receiver failing\nsink ops\nthe receiver takes nothing at the moment; what is for it waits (failures in a row: 3, since 2 Jan 03:04:05 UTC): answered 500 <b>"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSpans(t *testing.T) {
	l := MessageOf(message(), Budget{}).Lines[0]
	want := []Span{{Text: "Zeus. "}, {Text: "Out", Keyword: true, Changed: true}, {Text: " of stock", Keyword: true}, {Text: "."}}
	if fmt.Sprint(l.Spans) != fmt.Sprint(want) || l.Sign() != "+" {
		t.Errorf("got %v, want %v", l.Spans, want)
	}
}

// TestBudget: whatever the text and the way of counting, no bound is passed, the keyword
// stays visible, and what is left out is counted.
func TestBudget(t *testing.T) {
	for name, length := range map[string]func(string) int{"runes": Runes, "bytes": Bytes, "utf16": UTF16} {
		n := message()
		n.Diffs = nil
		for i := range 60 {
			text := strings.Repeat("😀 würde ", 100) + fmt.Sprintf("Argus%d ", i) + strings.Repeat("😀é", 400)
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: fmt.Sprintf("argus%d", i), Text: text, Snippet: text, Offset: i})
		}
		b := Budget{Total: 4000, Line: 200, Lines: 40, LineCost: 10, Length: length}
		m := MessageOf(n, b)
		total := length(m.Headline) + length(m.Title) + length(m.URL)
		for i, l := range m.Lines {
			if got := length(l.Text()); got > b.Line {
				t.Errorf("%s: line %d is %d long", name, i, got)
			}
			if !strings.Contains(l.Text(), fmt.Sprintf("Argus%d", i)) || !utf8.ValidString(l.Text()) {
				t.Errorf("%s: line %d is %q", name, i, l.Text())
			}
			total += l.cost(b)
		}
		if total > b.Total || len(m.Lines) == 0 || len(m.Lines)+m.More != 60 || m.Left() != fmt.Sprintf("and %d more", m.More) {
			t.Errorf("%s: total %d, %d lines, %d more: %q", name, total, len(m.Lines), m.More, m.Left())
		}
	}
}

// TestKeywordsAreShown: a line lists the keywords that its excerpt shows, however long the
// excerpt may be in the way of counting; others have lines of their own.
func TestKeywordsAreShown(t *testing.T) {
	japanese := "東京" + strings.Repeat("の天気", 40) + "大阪" + strings.Repeat("の天気", 40)
	marked := "alpha " + strings.Repeat("a_b.c ", 30) + "beta"
	for _, tt := range []struct {
		text     string
		keywords []string
		length   func(string) int
	}{
		{japanese, []string{"東京", "大阪"}, Bytes},
		{marked, []string{"alpha", "beta"}, func(s string) int { return Runes(s) + 6*strings.Count(s, "_") }},
	} {
		var n pipeline.Notification
		for _, k := range tt.keywords {
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: k, Text: tt.text, Snippet: tt.text})
		}
		if lines := MessageOf(n, Budget{}).Lines; len(lines) != 1 || len(lines[0].Keywords) != 2 {
			t.Errorf("in runes: got %v, want one line for both keywords", lines)
		}
		m := MessageOf(n, Budget{Length: tt.length})
		if len(m.Lines) != 2 {
			t.Errorf("got %v, want a line for each keyword", m.Lines)
		}
		for _, l := range m.Lines {
			for _, k := range l.Keywords {
				if !strings.Contains(l.Text(), k) {
					t.Errorf("%q does not show %s", l.Text(), k)
				}
			}
		}
	}
}

func TestHostileText(t *testing.T) {
	n := message()
	n.Title = "a\x00b\u202Ec\r\nd\xff\x1b[2J"
	for _, raw := range []string{"javascript:alert(1)", "https://example.com/\u202E", "https://", "https://" + strings.Repeat("x", 3000)} {
		n.URL = raw
		m := MessageOf(n, Budget{})
		if m.URL != "" || m.Title != "abc d\uFFFD[2J" {
			t.Errorf("%.40q: got URL %q, title %q", raw, m.URL, m.Title)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		s      string
		limit  int
		length func(string) int
		want   string
	}{
		{"short", 5, Runes, "short"},
		{"longer", 5, Runes, "long…"},
		{"ä😀ö😀", 8, Bytes, "ä…"},
		{"😀😀😀", 5, UTF16, "😀😀…"},
		{"longer", 0, Runes, ""},
		{"longer", 2, Bytes, ""},
	} {
		if got := Cut(tt.s, tt.limit, tt.length); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

// BenchmarkOf lays out a digest of many differences, of which few fit.
func BenchmarkOf(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("diffs=%d", size), func(b *testing.B) {
			n := message()
			n.Diffs = nil
			for i := range size {
				text := fmt.Sprintf("Argus%d was seen", i)
				n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: fmt.Sprintf("argus%d", i), Text: text, Snippet: "... " + text + " ...", Offset: i})
			}
			for b.Loop() {
				MessageOf(n, Budget{Total: 4000})
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(size), "µs/diff")
		})
	}
}
