package index

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// feedOf returns the text and the keys of a feed that is written as "key=text key=text".
func feedOf(items string) (content string, keys []string) {
	for item := range strings.FieldsSeq(items) {
		key, words, _ := strings.Cut(item, "=")
		content += string(pipeline.ItemStart) + words + "\n" + string(pipeline.ItemEnd)
		keys = append(keys, keyOf(key))
	}
	return content, keys
}

func keyOf(name string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%-8s", name)[:keySize])
}

// readFeeds gives a document of items the feeds in turn, one check each, and returns with which
// text each is compared, "-" where it makes no version and "0" where it is a baseline.
func readFeeds(t *testing.T, feeds ...string) []string {
	t.Helper()
	view := pipeline.View{Items: true}
	b := newBench(t)
	b.subscribe("c", view)
	var f feed
	var got []string
	for i, items := range feeds {
		if i > 0 {
			b.due()
		}
		extractor := "xml/1"
		if rest, ok := strings.CutPrefix(items, "xml/2 "); ok {
			items, extractor = rest, "xml/2"
		}
		content, keys := feedOf(items)
		o := b.outcome(flow.OutcomeRead)
		o.Document, o.Parts, o.Extractor, o.Items = flow.DocumentID(page, view), 1, extractor, keys
		o.TextHash, o.Packed = text.Hash(content+strings.Join(keys, "")), flow.PackText(content)
		b.do(outcome{Outcome: o, Feeds: map[string]feed{o.Document: f}})
		made := all[newVersion](b.out)
		switch {
		case len(made) == 0:
			got = append(got, "-")
			continue
		case made[0].Snapshot.Previous == 0:
			got = append(got, "0")
		default:
			base := strings.NewReplacer(string(pipeline.ItemStart), "", "\n"+string(pipeline.ItemEnd), " ").Replace(made[0].Feed.base)
			got = append(got, strings.TrimSpace(base))
		}
		f = feed{Seen: made[0].Feed.seen, Text: content}
	}
	return got
}

func TestFeeds(t *testing.T) {
	for _, c := range []struct{ feeds, want []string }{
		{[]string{"a=A b=B", "a=A b=B", "b=B a=A", "b=B", ""}, []string{"0", "-", "-", "-", "-"}},
		{[]string{"a=A b=B", "c=C a=A b=B", "c=C a=A b=B"}, []string{"0", "A B", "-"}},
		{[]string{"", "a=A", "a=A b=B"}, []string{"0", "", "A"}},
		// A change is compared within its item, wherever that is.
		{[]string{"a=A b=B", "b=B a=A2", "a=A2 b=B2"}, []string{"0", "B A", "A2 B"}},
		// What leaves while something comes is not what the new item is compared with.
		{[]string{"a=A b=B", "c=C b=B", "d=D c=C"}, []string{"0", "B", "C"}},
		// Another item may have the words of one that left.
		{[]string{"a=A", "b=A", "b=A"}, []string{"0", "", "-"}},
		{[]string{"a=A b=A c=A", "d=A a=A b=A"}, []string{"0", "A A"}},
		// A feed may give its items other ids at each fetch.
		{[]string{"a=A b=B", "c=A d=B", "e=A f=B"}, []string{"0", "-", "-"}},
		// What comes back is silent, and compared with its text again from then on.
		{[]string{"a=A b=B", "c=C b=B", "a=A c=C", "a=A2 c=C"}, []string{"0", "B", "A C", "A C"}},
		// What comes back with another text is reported as a whole.
		{[]string{"a=A b=B", "c=C b=B", "a=A2 c=C"}, []string{"0", "B", "C"}},
		// Other rules make other texts: only what is unknown is news.
		{[]string{"a=A b=B", "xml/2 a=A' b=B'", "xml/2 a=A' b=B2"}, []string{"0", "0", "A' B'"}},
		{[]string{"a=A b=B", "xml/2 c=C' a=A' b=B'", "xml/2 c=C' a=A2 b=B'"}, []string{"0", "A' B'", "C' A' B'"}},
	} {
		if got := readFeeds(t, c.feeds...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q: compared with %q, want %q", c.feeds, got, c.want)
		}
	}
}

// TestItemsRemembered has more items leave a feed than are remembered.
func TestItemsRemembered(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("i%d=T%d ", i, i) }
	var f feed
	first := "stays=S "
	for i := range rememberedItems - 1 {
		first += name(rememberedItems - 2 - i) // the latest first
	}
	for i, items := range []string{first, "stays=S a=A", "stays=S b=B"} {
		content, keys := feedOf(items)
		r, ok := f.compare(content, nil, keys, false)
		if !ok || !r.isNews {
			t.Fatalf("feed %d: %v, %v", i, r.isNews, ok)
		}
		f = feed{Seen: r.seen, Text: content}
	}
	if got := len(f.Seen) / itemSize; got != rememberedItems {
		t.Errorf("%d items are remembered, want %d", got, rememberedItems)
	}
	for i, want := range map[int]string{rememberedItems - 2: "S T4998", 2: "S T2", 1: "S", 0: "S"} {
		content, keys := feedOf("stays=S " + name(i))
		r, _ := f.compare(content, nil, keys, false)
		if got := strings.Join(strings.FieldsFunc(r.base, func(c rune) bool { return c < ' ' }), " "); got != want {
			t.Errorf("item %d came back and is compared with %q, want %q", i, got, want)
		}
	}
}

func TestFeedsWithoutTheirKeys(t *testing.T) {
	content, keys := feedOf("a=A b=B")
	for _, wrong := range [][]string{nil, keys[:1], {keys[0], keys[0]}, {keys[0], "?"}, {keys[0], "QQ"}} {
		if _, ok := (feed{}).compare(content, nil, wrong, false); ok {
			t.Errorf("the keys %q were taken", wrong)
		}
	}
}
