package recorded

import (
	"strings"
	"testing"
	"unicode"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/oracle"
)

// maxOracleBytes is the size of both texts, in bytes, above which the oracle's brute force
// would take more memory than a test should.
const maxOracleBytes = 400_000

// compareNotifications compares every notification with the oracle, and the absence of one too.
func compareNotifications(t *testing.T, texts []extraction, got []pipeline.Notification) {
	t.Helper()
	by := map[uint64]pipeline.Notification{}
	for _, n := range got {
		if _, twice := by[n.Version]; twice || n.Version < 2 || int(n.Version) > len(texts) {
			t.Errorf("unexpected notification for version %d", n.Version)
			continue
		}
		by[n.Version] = n
	}
	sub := oracle.Subscription{Keywords: keywords, Added: true, Removed: true}
	doubtful, skipped := 0, 0
	for v := 2; v <= len(texts); v++ {
		before, after := texts[v-2], texts[v-1]
		if len(before.visibleText())+len(after.visibleText()) > maxOracleBytes {
			skipped++
			continue
		}
		oldPage, newPage := before.oraclePage(), after.oraclePage()
		want := oracle.Compare(oldPage, newPage).Expect(sub, nil)
		if want.Doubtful() {
			doubtful++
		}
		n, told := by[uint64(v)]
		switch {
		case want.Must() && !told:
			t.Errorf("version %d: a notification is missing", v)
		case told && !want.May():
			t.Errorf("version %d: a notification was invented: %+v", v, n.Diffs)
		case told:
			if err := want.Check(oracleReports(n, before, after), n.Omitted, false); err != nil {
				t.Errorf("version %d: %v", v, err)
			}
		}
	}
	t.Logf("compared %d changes, %d of them open in part, %d too large for brute force", max(len(texts)-1-skipped, 0), doubtful, skipped)
}

// oraclePage returns e as the oracle takes it.
func (e extraction) oraclePage() oracle.Page {
	var p oracle.Page
	at := 0
	for _, b := range e.blocks {
		text := joinWordMarks(b.text)
		p = append(p, oracle.Block{Text: text, Offset: at, Items: b.items})
		at += len(text) + 1
	}
	return p
}

// oracleReports are the diffs of n, with texts as the oracle reads them. An offset counts the
// marks of items, which the oracle does not have, and of which the extraction only knows
// about how many there are: so each offset is moved to the nearest place where its text
// stands.
func oracleReports(n pipeline.Notification, before, after extraction) []oracle.Report {
	var rs []oracle.Report
	for _, d := range n.Diffs {
		e := after
		if d.Event == pipeline.Removed {
			e = before
		}
		r := oracle.Report{Event: string(d.Event), Keyword: d.Keyword, Text: joinWordMarks(d.Text), Snippet: joinWordMarks(d.Snippet), Item: d.Item, Title: joinWordMarks(d.Title), Offset: -1}
		nearest := -1
		for i, b := range e.oraclePage() {
			for at := 0; at <= len(b.Text); at++ {
				k := strings.Index(b.Text[at:], r.Text)
				if k < 0 {
					break
				}
				at += k
				distance := b.Offset + at + e.blocks[i].marks - d.Offset
				if distance = max(distance, -distance); nearest < 0 || distance < nearest {
					nearest, r.Offset = distance, b.Offset+at
				}
			}
		}
		rs = append(rs, r)
	}
	return rs
}

// joinWordMarks replaces the punctuation that stands within a word, by the rules of docs/text.md, with
// a letter of the same length: the oracle takes words for runs of letters and digits.
func joinWordMarks(s string) string {
	rs := []rune(s)
	out := make([]rune, len(rs))
	copy(out, rs)
	for i := 1; i+1 < len(rs); i++ {
		a, b := rs[i-1], rs[i+1]
		letters := unicode.IsLetter(a) && unicode.IsLetter(b)
		digits := unicode.IsDigit(a) && unicode.IsDigit(b)
		switch rs[i] {
		case '\'':
			if letters || digits {
				out[i] = 'x'
			}
		case '&':
			if letters && isShortWord(rs[:i], -1) && isShortWord(rs[i+1:], 1) {
				out[i] = 'x'
			}
		case '.', ',':
			if digits {
				out[i] = 'x'
			}
		case '\u2019', '\u2018':
			if letters || digits {
				out[i] = 'ꜩ' // three bytes, as the apostrophe
			}
		}
	}
	for i, r := range out {
		if r == '_' {
			out[i] = 'x'
		}
	}
	return string(out)
}

// isShortWord reports whether the letters at the beginning of rs (step 1) or at its end (step -1) are
// at most three, as those around the "&" of "AT&T".
func isShortWord(rs []rune, step int) bool {
	at := 0
	if step < 0 {
		at = len(rs) - 1
	}
	n := 0
	for ; at >= 0 && at < len(rs) && (unicode.IsLetter(rs[at]) || unicode.IsDigit(rs[at])); at += step {
		if unicode.IsDigit(rs[at]) {
			return false
		}
		n++
	}
	return n <= 3
}
