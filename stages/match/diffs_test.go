package match

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

func TestGroups(t *testing.T) {
	away := groupTexts{old: "argus went to sleep"}
	came := groupTexts{new: "then argus woke up"}
	block := "argus sees|all things"
	for _, c := range []struct {
		name   string
		groups []groupTexts
		sub    pipeline.Subscription
		want   string
	}{
		{"a new passage while another went", []groupTexts{away, came}, keywords("argus"), "-argus: argus went to sleep; +argus: then argus woke up"},
		{"counts are per group", []groupTexts{{old: "a argus", new: "a"}, {old: "b", new: "b argus"}}, keywords("argus"), "-argus: argus; +argus: argus"},
		{"moved says nothing", []groupTexts{{old: block, new: block, moved: true}}, keywords("argus"), ""},
		{"moved on demand", []groupTexts{{old: block, new: block, moved: true}}, with(keywords("argus", "things"), wantMoved),
			"-argus: argus sees; -things: all things; +argus: argus sees; +things: all things"},
		{"moved, terms", []groupTexts{{old: block, new: block, moved: true}}, with(with(keywords("sees argus", "argus things"), matchTerms), wantMoved),
			"-sees argus: argus sees; +sees argus: argus sees"},
		{"moved, one event", []groupTexts{{old: block, new: block, moved: true}}, with(with(keywords("argus"), wantMoved), onlyAdded), "+argus: argus sees"},
		{"moved on demand, and an edit", []groupTexts{{old: block, new: block, moved: true}, came}, with(keywords("argus"), wantMoved),
			"-argus: argus sees; +argus: argus sees; +argus: then argus woke up"},
	} {
		ch, _ := changeOf(64, c.groups...)
		if got := strings.Join(diffsOf(t, ch, c.sub), "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestNoLanguage(t *testing.T) {
	ch, _ := changeOf(64, groupTexts{old: "x", new: "x of god house the"})
	ch.Language = ""
	for _, c := range []struct {
		sub  pipeline.Subscription
		want string
	}{
		{with(keywords("GODS"), stemWords), ""},
		{with(keywords("GOD"), stemWords), "+GOD: of god house the"},
		{with(keywords("the"), filterStopwords), "+the: of god house the"},
		{with(with(keywords("Gods"), stemWords), func(s *pipeline.Subscription) { s.Language = "en-GB" }), "+Gods: of god house the"},
	} {
		if got := strings.Join(diffsOf(t, ch, c.sub), "; "); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.sub, got, c.want)
		}
	}
}

func matchOne(t *testing.T, c *flow.Change, s pipeline.Subscription) Match {
	t.Helper()
	ms := NewMatcher([]Entry{{"s", s}}, text.NewLanguages()).Match(c)
	if len(ms) != 1 || ms[0].ID != "s" {
		t.Fatalf("%d matches, want 1", len(ms))
	}
	return ms[0]
}

func TestSnippet(t *testing.T) {
	offset := func(n int) func(*pipeline.Subscription) {
		return func(s *pipeline.Subscription) { s.SnippetOffset = &n }
	}
	long := strings.Repeat("alpha beta ", 30)
	for _, c := range []struct {
		name    string
		context int
		old     string
		new     string
		sub     pipeline.Subscription
		want    string
	}{
		{"the whole block", 64, "Zeus. In stock.", "Zeus. Out of stock.", keywords("out of stock"), "Zeus. Out of stock."},
		{"0 characters", 64, "see the old eyes of it", "see the new eyes of it", with(keywords("new"), offset(0)), "... new ..."},
		{"moved out to a border", 64, "look at the old eyes of it all", "look at the new eyes of it all", with(keywords("new"), offset(2)), "... the new eyes ..."},
		{"what is left is shorter than dots", 64, "see old eyes.", "see new eyes.", with(keywords("new"), offset(2)), "see new eyes."},
		{"characters, not bytes", 64, "ééé èèè alt øøø ååå ööö", "ééé èèè neu øøø ååå ööö", with(keywords("neu"), offset(3)), "... èèè neu øøø ..."},
		{"50 by default", 64, long + "x " + long, long + "y " + long, keywords("y"),
			"... beta alpha beta alpha beta alpha beta alpha beta y alpha beta alpha beta alpha beta alpha beta alpha ..."},
		{"cut by the window", 1, "a b x c d", "a b y c d", keywords("y"), "... b y c ..."},
		{"at the start", 64, "x a bb cc dd ee", "y a bb cc dd ee", with(keywords("y"), offset(3)), "y a ..."},
		{"spaces are trimmed", 64, "aaa - x - bbb ccc ddd", "aaa - y - bbb ccc ddd", with(keywords("y"), offset(3)), "aaa - y - ..."},
	} {
		ch, _ := changeOf(c.context, groupTexts{old: c.old, new: c.new})
		if got := matchOne(t, ch, c.sub).Diffs; got[0].Snippet != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got[0].Snippet, c.want)
		}
	}
}

// TestCounterpart: it is the text with its edits undone or made, and empty where something stands on one side only.
func TestCounterpart(t *testing.T) {
	for _, c := range []struct {
		old, new string
		edits    [][2]string // what was removed, and what was added in its place
		keyword  string
		want     string
	}{
		{"Zeus is in stock", "Zeus is out of stock", [][2]string{{"in", "out of"}}, "out of stock", "in stock"},
		{"Zeus is in stock", "Zeus is out of stock", [][2]string{{"in", "out of"}}, "in stock", "out of stock"},
		{"see one old and one grey owl", "see one new and one brown owl", [][2]string{{"old", "new"}, {"grey", "brown"}}, "new and one brown", "old and one grey"},
		{"see the owl", "see the new owl", [][2]string{{"", "new"}}, "new owl", ""},
	} {
		ch, _ := changeOf(64, groupTexts{old: c.old, new: c.new})
		for i, e := range c.edits {
			for side, content := range []string{c.old, c.new} {
				if e[side] != "" {
					d := flow.Difference{Event: eventOfSide[side], Text: e[side], Offset: strings.Index(content, e[side]), Edit: i + 1}
					ch.Groups[0].Differences = append(ch.Groups[0].Differences, d)
				}
			}
		}
		if d := matchOne(t, ch, keywords(c.keyword)).Diffs[0]; d.Counterpart != c.want {
			t.Errorf("%q in %q: got %q, want %q", c.keyword, c.new, d.Counterpart, c.want)
		}
	}
}

// TestTextHasWholeWords checks that a text does not end within a word as people write it.
func TestTextHasWholeWords(t *testing.T) {
	for _, c := range []struct{ old, new, keyword, want string }{
		{"그는 배운다", "그는 한국어를 배운다", "한국", "한국어를"},
		{"un verre", "un verre de l'eau", "eau", "de l'eau"},
		{"Price and more", "Price &m; and more", "m", "&m;"},
	} {
		ch, _ := changeOf(64, groupTexts{old: c.old, new: c.new})
		d := matchOne(t, ch, keywords(c.keyword)).Diffs[0]
		if d.Text != c.want || d.Offset != strings.Index(c.new, c.want) {
			t.Errorf("%q: got %q at %d, want %q", c.new, d.Text, d.Offset, c.want)
		}
	}
}

func TestOffset(t *testing.T) {
	ch, _ := changeOf(2, groupTexts{old: "one", new: "one zeus"}, groupTexts{old: "a b c d e old stuff", new: "a b c d e new stuff"})
	m := matchOne(t, ch, keywords("old stuff", "new"))
	olds, news := "one\na b c d e old stuff\n", "one zeus\na b c d e new stuff\n"
	for i, want := range []int{strings.Index(olds, "old stuff"), strings.Index(news, "new")} {
		if m.Diffs[i].Offset != want {
			t.Errorf("%q is at %d, want %d", m.Diffs[i].Text, m.Diffs[i].Offset, want)
		}
	}
}

func TestLongTextIsCutAroundTheKeyword(t *testing.T) {
	var words []string
	for i := range 2000 {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	words[1000], words[1001] = "argus", "panoptes"
	ch, _ := changeOf(64, groupTexts{new: strings.Join(words, " ")})
	d := matchOne(t, ch, keywords("argus panoptes")).Diffs[0]
	if len(d.Text) > maxTextBytes || len(d.Text) < maxTextBytes-20 || !strings.Contains(d.Text, "w999 argus panoptes w1002") {
		t.Errorf("a text of %d bytes: %q", len(d.Text), d.Text)
	}
	if left, right, _ := strings.Cut(d.Text, "argus panoptes"); len(left)-len(right) > 250 || len(right)-len(left) > 250 {
		t.Errorf("%d bytes before, %d behind", len(left), len(right))
	}
	if !strings.Contains(d.Snippet, d.Text) || !strings.HasPrefix(d.Snippet, "... ") || !strings.HasSuffix(d.Snippet, " ...") || len(d.Snippet) > maxTextBytes+150 {
		t.Errorf("snippet %q", d.Snippet)
	}
	// Terms that are further apart than a text may be long.
	words[1001], words[1900] = "x", "panoptes"
	ch, _ = changeOf(64, groupTexts{new: strings.Join(words, " ")})
	d = matchOne(t, ch, with(keywords("panoptes argus"), matchTerms)).Diffs[0]
	if d.Text != "argus ... panoptes" {
		t.Errorf("terms far apart: %q", d.Text)
	}
	words[1900], words[1100] = "x", "panoptes"
	ch, _ = changeOf(64, groupTexts{new: strings.Join(words, " ")})
	d = matchOne(t, ch, with(keywords("panoptes argus"), matchTerms)).Diffs[0]
	if len(d.Text) > maxTextBytes || !strings.Contains(d.Text, "argus x") || !strings.Contains(d.Text, "panoptes") {
		t.Errorf("terms not that far apart: %q", d.Text)
	}
}

func TestNotMoreThanFits(t *testing.T) {
	var groups []groupTexts
	for i := range 60 {
		groups = append(groups, groupTexts{new: fmt.Sprintf("argus number%d", i)})
	}
	groups = append(groups, groupTexts{new: "zeus", old: "hera"})
	ch, _ := changeOf(64, groups...)
	m := matchOne(t, ch, keywords("argus", "zeus", "hera"))
	if len(m.Diffs) != maxDiffs || m.Omitted != 12 {
		t.Errorf("%d diffs, %d omitted", len(m.Diffs), m.Omitted)
	}
	if a, b := m.Diffs[48], m.Diffs[49]; a.Keyword != "hera" || b.Keyword != "zeus" || m.Diffs[47].Text != "argus number47" {
		t.Errorf("the last are %q and %q", a.Keyword, b.Keyword)
	}
	// A keyword that is given twice takes no room from others.
	if m = matchOne(t, ch, keywords("argus", "argus")); len(m.Diffs) != maxDiffs || m.Omitted != 10 {
		t.Errorf("%d diffs of a repeated keyword, %d omitted", len(m.Diffs), m.Omitted)
	}
	// More keywords than diffs fit: one of each.
	var words []string
	for i := range 60 {
		words = append(words, fmt.Sprintf("number%d", i))
	}
	m = matchOne(t, ch, keywords(append(words, "argus")...))
	seen := map[string]int{}
	for _, d := range m.Diffs {
		seen[d.Keyword]++
	}
	if len(m.Diffs) != 61 || len(seen) != 61 || m.Omitted != 59 {
		t.Errorf("%d diffs of %d keywords, %d omitted", len(m.Diffs), len(seen), m.Omitted)
	}
	// Just as many as fit.
	if m = matchOne(t, ch, keywords(words[:50]...)); len(m.Diffs) != 50 || m.Omitted > 0 {
		t.Errorf("%d diffs, %d omitted", len(m.Diffs), m.Omitted)
	}
	// More than fit, each twice: what is said of each is all that is kept, and not all there was.
	groups = nil
	for _, text := range []string{"once ", "twice "} {
		for _, w := range words {
			groups = append(groups, groupTexts{new: text + w})
		}
	}
	ch, _ = changeOf(64, groups...)
	for _, n := range []int{51, 60} {
		if m = matchOne(t, ch, keywords(words[:n]...)); len(m.Diffs) != n || m.Omitted != n {
			t.Errorf("%d keywords: %d diffs, %d omitted", n, len(m.Diffs), m.Omitted)
		}
	}
	// Identical reports are one, and do not count.
	groups = nil
	for range 60 {
		groups = append(groups, groupTexts{new: "argus"})
	}
	ch, _ = changeOf(64, groups...)
	if m = matchOne(t, ch, keywords("argus")); len(m.Diffs) != 1 || m.Omitted > 0 {
		t.Errorf("%d diffs, %d omitted", len(m.Diffs), m.Omitted)
	}
}

func TestCheck(t *testing.T) {
	good := flow.Window{Text: "ab cd", Tokens: []flow.Span{{0, 2}, {3, 5}}, Edits: []flow.Span{{0, 1}, {2, 2}}}
	for name, spoil := range map[string]func(w *flow.Window){
		"token behind the text": func(w *flow.Window) { w.Tokens = []flow.Span{{0, 6}} },
		"token before the text": func(w *flow.Window) { w.Tokens = []flow.Span{{-1, 2}} },
		"empty token":           func(w *flow.Window) { w.Tokens = []flow.Span{{1, 1}} },
		"tokens overlap":        func(w *flow.Window) { w.Tokens = []flow.Span{{0, 3}, {2, 5}} },
		"edit behind tokens":    func(w *flow.Window) { w.Edits = []flow.Span{{2, 3}} },
		"edit backwards":        func(w *flow.Window) { w.Edits = []flow.Span{{1, 0}} },
		"edits overlap":         func(w *flow.Window) { w.Edits = []flow.Span{{0, 2}, {1, 2}} },
	} {
		w := good
		if err := checkWindows(&flow.Change{Groups: []flow.Group{{New: []flow.Window{w}}}}); err != nil {
			t.Fatal(err)
		}
		spoil(&w)
		if err := checkWindows(&flow.Change{Groups: []flow.Group{{Old: []flow.Window{w}}}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNotLargerThanANotificationMayBe: very many keywords of one long passage would each bring
// 2 KB of it, and as much again as their snippet.
func TestNotLargerThanANotificationMayBe(t *testing.T) {
	const n = 3000
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("number%d", i)
	}
	ch, _ := changeOf(64, groupTexts{new: strings.Join(words, " <&> ")})
	ch.Title = strings.Repeat("<", 500)
	m := matchOne(t, ch, keywords(words...))
	b, err := json.Marshal(pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/", Diffs: m.Diffs, ID: strings.Repeat("i", 26), Type: pipeline.NotificationType, Time: time.Now(),
		Client: "default", Version: 1 << 50, Title: ch.Title, Language: "en", Change: strings.Repeat("c", 26), Truncated: true, Omitted: m.Omitted,
	})
	if err != nil || len(b) > flow.MaxNotification || len(b) < flow.MaxNotification*9/10 {
		t.Errorf("%d bytes, %v; want at most %d and not much less", len(b), err, flow.MaxNotification)
	}
	if len(m.Diffs)+m.Omitted != n || m.Diffs[0].Keyword != words[0] {
		t.Errorf("%d diffs and %d omitted, want %d together", len(m.Diffs), m.Omitted, n)
	}
}

// TestMoreThanIsKept: beyond maxPlaces places are only counted, but each keyword is told of.
func TestMoreThanIsKept(t *testing.T) {
	const n = maxPlaces + 100
	apart := make([]groupTexts, n, n+1)
	for i := range n {
		apart[i] = groupTexts{new: fmt.Sprintf("argus number%d", i)}
	}
	apart = append(apart, groupTexts{new: "zeus argus"})
	for name, c := range map[string]struct {
		groups []groupTexts
		sub    pipeline.Subscription
		want   int
	}{
		"a phrase": {apart, keywords("argus", "zeus"), n + 2},
		"terms":    {apart, with(keywords("argus", "zeus argus"), matchTerms), n + 2},
	} {
		ch, _ := changeOf(64, c.groups...)
		m := matchOne(t, ch, c.sub)
		if last := m.Diffs[len(m.Diffs)-1]; len(m.Diffs) > maxDiffs || !strings.Contains(last.Keyword, "zeus") {
			t.Errorf("%s: %d diffs, the last one of %s", name, len(m.Diffs), last.Keyword)
		}
		if got := len(m.Diffs) + m.Omitted; got != c.want {
			t.Errorf("%s: %d diffs and omitted ones, want %d", name, got, c.want)
		}
	}
}
