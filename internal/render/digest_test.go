package render

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

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
