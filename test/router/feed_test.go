package router_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFeed watches the items of a feed in one run after the other.
func TestFeed(t *testing.T) {
	t.Parallel()
	box, s, dir := newMailbox(), newSite(t, ""), t.TempDir()
	for _, c := range []struct{ items, want string }{
		{"1=Argus 2=two", ""},
		{"2=two 1=Argus", ""},
		{"2=two", ""},
		{"1=Argus 2=two", ""},
		{"3=Argus 1=Argus 2=two", "added argus"},
		{"3=Argus 1=none", "removed argus"},
		{"3=Argus 1=none", ""},
		{"4=Argus", "added argus"},
		{"", ""},
		{"4=Argus 3=Argus 1=none", ""},
		{"4=Argus 3=none 1=none", "removed argus"},
	} {
		var body strings.Builder
		body.WriteString("<rss><channel><title>News</title>")
		for item := range strings.FieldsSeq(c.items) {
			guid, text, _ := strings.Cut(item, "=")
			fmt.Fprintf(&body, "<item><guid>%s</guid><title>Item %s</title><description>%s</description></item>", guid, guid, text)
		}
		s.set(body.String() + "</channel></rss>")
		cfg := watchConfig(s, box, dir, "argus")
		cfg.Subscriptions[0].Items = true
		runToEnd(t, cfg)
		var got []string
		for _, n := range box.take() {
			for _, d := range n.Diffs {
				got = append(got, string(d.Event)+" "+d.Keyword)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %q, want %q", c.items, got, c.want)
		}
	}
}
