package layout

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestTestMessage checks that nobody takes a message that was sent by hand for news.
func TestTestMessage(t *testing.T) {
	n := pipeline.Notification{Status: pipeline.StatusOK, Type: pipeline.NotificationTypeTest, URL: "https://example.com/",
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "argus", Snippet: "argus"}}}
	m := Of(n, Budget{})
	if m.Headline != "Test: added: argus" || !strings.Contains(m.Reason, "this is a test") {
		t.Errorf("got %+v", m)
	}
	n.Type = pipeline.NotificationType
	if m := Of(n, Budget{}); m.Headline != "added: argus" || m.Reason != "" {
		t.Errorf("got %+v", m)
	}
}
