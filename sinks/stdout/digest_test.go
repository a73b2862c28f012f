package stdout

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

func TestDigestIsToldAsOne(t *testing.T) {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest, URL: "https://example.com/a", Time: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "argus one", Snippet: "argus one"},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "zeus two", Snippet: "zeus two"},
		},
		Items: []pipeline.Item{{ID: "A", Diffs: 1}, {ID: "B", Diffs: 1}},
	}
	b, err := printer{location: time.UTC}.print(n)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	for _, want := range []string{"example.com/a  2 changes of 2 checks\n", "argus one", "zeus two"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
