package render

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

func testMessage() pipeline.Notification {
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
	got := MessageOf(testMessage(), Budget{}).Plain()
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
	l := MessageOf(testMessage(), Budget{}).Lines[0]
	want := []Span{{Text: "Zeus. "}, {Text: "Out", Keyword: true, Event: pipeline.Added}, {Text: " of stock", Keyword: true}, {Text: "."}}
	if fmt.Sprint(l.Spans) != fmt.Sprint(want) || l.Sign() != "+" {
		t.Errorf("got %v, want %v", l.Spans, want)
	}
}

// TestBudget: whatever the text and the way of counting, no bound is passed, the keyword
// stays visible, and what is left out is counted.
func TestBudget(t *testing.T) {
	for name, length := range map[string]func(string) int{"runes": Runes, "bytes": Bytes, "utf16": UTF16} {
		n := testMessage()
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
	n := testMessage()
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

// TestTestMessage checks that nobody takes a message that was sent by hand for news.
func TestTestMessage(t *testing.T) {
	n := pipeline.Notification{Status: pipeline.StatusOK, Type: pipeline.NotificationTypeTest, URL: "https://example.com/",
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "argus", Snippet: "argus"}}}
	m := MessageOf(n, Budget{})
	if m.Headline != "Test: added: argus" || !strings.Contains(m.Reason, "this is a test") {
		t.Errorf("got %+v", m)
	}
	n.Type = pipeline.NotificationType
	if m := MessageOf(n, Budget{}); m.Headline != "added: argus" || m.Reason != "" {
		t.Errorf("got %+v", m)
	}
}

func TestEncoded(t *testing.T) {
	for _, s := range []string{"", "plain <&> ä😀", "\"\\/\n\r\t\b\f\x00\x1b\x7f\u0085", "\u2028\u2029\u202a", "\uFFFD"} {
		quoted, err := JSON(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Encoded(s), len(quoted)-2; got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

func TestDigestSaysHowMuchItHolds(t *testing.T) {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest, URL: "https://example.com/a", Items: []pipeline.Item{{Diffs: 2}, {Diffs: 1}},
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Snippet: "argus one"}, {Event: pipeline.Removed, Keyword: "zeus", Snippet: "zeus two"},
			{Event: pipeline.Added, Keyword: "argus", Snippet: "argus three"},
		},
	}
	m := MessageOf(n, Budget{})
	if want := "3 changes of 2 checks; added: argus; removed: zeus"; m.Headline != want {
		t.Errorf("got %q, want %q", m.Headline, want)
	}
	if len(m.Lines) != 3 {
		t.Errorf("got %d lines, want 3", len(m.Lines))
	}
	n.Items, n.Diffs = n.Items[1:], n.Diffs[2:]
	if got, want := Collected(n), "1 change of 1 check"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n.Type = pipeline.NotificationType
	if got := Collected(n); got != "" {
		t.Errorf("one that is no digest: %q", got)
	}
}

func TestVisibleSpans(t *testing.T) {
	literal := func(s string) string { return s }
	for event, want := range map[pipeline.Event]string{
		pipeline.Added:   "\\+ k\n> a b**c d**",
		pipeline.Removed: "\\- k\n> a ~~b**c**~~ **d**",
	} {
		spans := []Span{{Text: "a "}, {Text: "b", Event: event}, {Text: "c", Keyword: true, Event: event}, {Text: " d", Keyword: true}}
		m := Message{Lines: []Line{{Event: event, Keywords: []string{"k"}, Spans: spans}}}
		if got := AsMarkdown(m, literal); got != want {
			t.Errorf("%s: got %q, want %q", event, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	long := strings.Repeat("ä", 50) + "X" + strings.Repeat("ö", 50)
	for _, tt := range []struct {
		s     string
		at    int
		limit int
		want  string
	}{
		{"short", 2, 10, "short"},
		{long, 100, 9, "äääXööööö"},
		{long, 0, 5, "äääää"},
		{long, len(long), 5, "ööööö"},
		{"one two three four five six", 14, 14, "four five"},
	} {
		start, end := excerptRange(tt.s, tt.at, tt.limit)
		if got := tt.s[start:end]; got != tt.want {
			t.Errorf("window(%.10q, %d, %d) = %q, want %q", tt.s, tt.at, tt.limit, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ s, keyword, want string }{
		{"a concatenated cat", "cat", "cat"},
		{"Zeus is Out of stock now", "out of stock", "Out of stock"},
		{"the prices: Ärger", "arger", "Ärger"},
		{"all running dogs", "run", "running"},
		{"stock that ran out", "out stock", "out"},
		{"now ✔ price: $10", "price 10", "price: $10"},
		{"now 10, then $ 10", "$10", "$ 10"},
		{"nothing", "else", ""},
	} {
		from, to := findKeyword(c.s, text.Tokens(c.s), c.keyword, 0)
		if got := c.s[from:to]; got != c.want {
			t.Errorf("find(%q, %q) = %q, want %q", c.s, c.keyword, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text          string
		columns, hang int
		want          string
	}{
		{"one two three", 0, 0, "one two three"},
		{"one two three", 13, 0, "one two three"},
		{"one two three", 8, 0, "one two\nthree"},
		{"  one two three", 8, 2, "  one\n    two\n    three"},
		{"one\n  2  x", 4, 0, "one\n  2 \n  x"},
		{"https://example.com/ is long", 10, 0, "https://example.com/\nis long"},
		{"日本 日本", 5, 0, "日本\n日本"},
	} {
		if got := Wrap(c.text, c.columns, c.hang); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

// TestLinked: the address of the web page is in every layout, however small the budget is.
func TestLinked(t *testing.T) {
	const at = "https://vokter.example.com/diff?url=https%3A%2F%2Fexample.com%2F&to=2"
	n := pipeline.Notification{Status: pipeline.StatusOK, URL: "https://example.com/", Title: "Shop", Link: at, Diffs: []pipeline.Diff{
		{Event: pipeline.Added, Keyword: "lantern", Text: "lantern", Snippet: strings.Repeat("a lantern ", 50)},
	}}
	for _, total := range []int{0, 400, 1} {
		m := MessageOf(n, Budget{Total: total})
		if !strings.HasSuffix(m.Plain(), "\nWhat changed: "+at) {
			t.Errorf("%d: got %s", total, m.Plain())
		}
		if got := AsMarkdown(m, func(s string) string { return s }); !strings.HasSuffix(got, "[What changed](<"+strings.ReplaceAll(at, "&", "&amp;")+">)") {
			t.Errorf("%d: got %s", total, got)
		}
	}
	n.Link = "javascript:alert(1)"
	if m := MessageOf(n, Budget{}); m.Link != "" || strings.Contains(m.Plain(), "What changed") {
		t.Errorf("got %s", m.Plain())
	}
}

// TestDigestOfValues: each change of the value is a line as in a notification of its own, and the
// headline has the first and the last value.
func TestDigestOfValues(t *testing.T) {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest, URL: "https://shop.example.com/lamp", Title: "Lamp",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Removed, Text: "120.00", Snippet: "120.00 EUR", Edit: 1}, {Event: pipeline.Added, Text: "95.00", Snippet: "95.00 EUR", Edit: 1},
			{Event: pipeline.Removed, Text: "101.00", Snippet: "101.00 EUR", Edit: 2}, {Event: pipeline.Added, Text: "99.00", Snippet: "99.00 EUR", Edit: 2},
		},
		Items: []pipeline.Item{
			{Diffs: 2, Value: &pipeline.ValueChange{Name: "Price", Old: "120.00", New: "95.00", Unit: "EUR", Condition: "below 100"}},
			{Diffs: 2, Value: &pipeline.ValueChange{Name: "Price", Old: "101.00", New: "99.00", Unit: "EUR", Condition: "below 100"}},
		},
	}
	want := `2 changes of 2 checks; Price 120.00 -> 99.00 EUR
Lamp
https://shop.example.com/lamp

~ Price 120.00 -> 95.00 EUR (below 100)
~ Price 101.00 -> 99.00 EUR (below 100)`
	if got := MessageOf(n, Budget{}).Plain(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	n.URL, n.Items[0].URL, n.Items[1].URL = "", "https://shop.example.com/lamp", "https://shop.example.com/desk"
	if got := MessageOf(n, Budget{}).Plain(); !strings.Contains(got, "shop.example.com/desk): Price 101.00 -> 99.00 EUR (below 100)") {
		t.Errorf("a group: got\n%s", got)
	}
}

// TestMutingNotice agrees in number with the places that it names.
func TestMutingNotice(t *testing.T) {
	for m, want := range map[*pipeline.Muting]string{
		{Places: []string{"[6] left"}, Count: 1}:              "1 place changes at nearly every check: [6] left. From now on you are not told of it;",
		{Places: []string{"[6] left"}, Count: 1, Whole: true}: "leaves it out, and \"restless: tell\" keeps it",
		{Places: []string{"[6] left", "[7]"}, Count: 2}:       "2 places change at nearly every check: [6] left; [7]. From now on you are not told of them;",
	} {
		if got := mutingNotice(*m); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
