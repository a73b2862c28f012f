package recorded

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/test/oracle"
)

// maxOracleBytes is the size of both texts, in bytes, above which the oracle's brute force
// would take more memory than a test should.
const maxOracleBytes = 400_000

// compareNotifications compares every notification with the oracle, and the absence of one too.
func compareNotifications(t *testing.T, texts []extraction, view pipeline.View, got []pipeline.Notification) {
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
		oldPage, newPage := before.oraclePage(t, view), after.oraclePage(t, view)
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
			if err := want.Check(oracleReports(n), n.Omitted, false); err != nil {
				t.Errorf("version %d: %v", v, err)
			}
		}
	}
	t.Logf("compared %d changes, %d of them open in part, %d too large for brute force", max(len(texts)-1-skipped, 0), doubtful, skipped)
}

// oraclePage returns e as the oracle takes it: with the items, keys and offsets that the reader gives. They are what
// the versions are made of; the text is that of e.
func (e extraction) oraclePage(t *testing.T, view pipeline.View) oracle.Page {
	t.Helper()
	raw := pipeline.Raw{ContentType: "text/html; charset=utf-8", Body: bytes.ToValidUTF8(e.page, []byte("\uFFFD"))}
	text, err := html.New().Read(t.Context(), raw, view)
	if err != nil {
		t.Fatal(err)
	}
	var p oracle.Page
	var items []int
	var keys []oracle.Key
	started := 0
	for at := 0; at < len(text.Content); at++ {
		switch text.Content[at] {
		case pipeline.BlockEnd:
		case pipeline.ItemStart:
			var k pipeline.Key
			if started < len(text.Keys) {
				k = text.Keys[started]
			}
			started++
			items, keys = append(items, started), append(keys, oracleKey(k))
		case pipeline.ItemEnd:
			items, keys = items[:len(items)-1], keys[:len(keys)-1]
		default:
			n := strings.IndexByte(text.Content[at:], pipeline.BlockEnd)
			if len(p) == len(e.blocks) || text.Content[at:at+n] != e.blocks[len(p)] {
				t.Fatalf("block %d is %q, not as in an independent extraction", len(p), text.Content[at:at+n])
			}
			p = append(p, oracle.Block{
				Text: joinWordMarks(e.blocks[len(p)]), Offset: at, Items: slices.Clone(items), Keys: slices.Clone(keys),
			})
			at += n
		}
	}
	if len(p) != len(e.blocks) {
		t.Fatalf("%d blocks, %d in an independent extraction", len(p), len(e.blocks))
	}
	return p
}

func oracleKey(k pipeline.Key) oracle.Key {
	if k == 0 {
		return oracle.Key{}
	}
	return oracle.Key{List: uint32(k.List()), ID: uint32(k)}
}

// oracleReports are the diffs of n, with texts as the oracle reads them.
func oracleReports(n pipeline.Notification) []oracle.Report {
	var rs []oracle.Report
	for _, d := range n.Diffs {
		rs = append(rs, oracle.Report{
			Event: string(d.Event), Keyword: d.Keyword, Text: joinWordMarks(d.Text), Snippet: joinWordMarks(d.Snippet),
			Item: d.Item, Title: joinWordMarks(d.Title), Offset: d.Offset,
		})
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
