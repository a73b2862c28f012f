package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

func TestChangeRecord(t *testing.T) {
	change := func(groups ...Group) Change {
		return Change{ID: "C", URL: "https://example.com/", Page: "https://example.com/", Document: "D", Version: 3, Previous: 2, Time: time.Unix(0, 0).UTC(), Groups: groups}
	}
	added := func(text string) Group {
		return Group{New: []Window{{Text: text}}, Differences: []Difference{{Event: pipeline.Added, Text: text, Edit: 1}}}
	}
	var many []Group
	for i := range 30_000 {
		many = append(many, added(fmt.Sprint("a <b> new paragraph ", i)))
	}
	for name, tt := range map[string]struct {
		change    Change
		truncated bool
	}{
		"small":               {change(added("new")), false},
		"many":                {change(many...), true},
		"large":               {change(added(strings.Repeat("<ä\x00", 400_000))), true},
		"coarse":              {change(Group{Coarse: true, Differences: []Difference{{Event: pipeline.Added, Text: strings.Repeat("word ", 400_000)}}}), true},
		"only moved":          {change(Group{Moved: true, Old: []Window{{Text: strings.Repeat("a", 1<<20)}}}), true},
		"moved before others": {change(append([]Group{{Moved: true, Old: []Window{{Text: "m"}}}}, many...)...), true},
	} {
		n, err := tt.change.Notification()
		if err != nil {
			t.Fatal(err)
		}
		var got Change
		if err := json.Unmarshal(n.Record, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(n.Record) > MaxChangeRecord || got.Truncated != tt.truncated || len(got.Groups) == 0 || got.Version != 3 || n.ID != "C" {
			t.Errorf("%s: %d bytes, truncated %v, %d groups", name, len(n.Record), got.Truncated, len(got.Groups))
		}
		if tt.truncated && strings.HasPrefix(name, "many") && len(n.Record) < MaxChangeRecord*9/10 {
			t.Errorf("%s: only %d bytes", name, len(n.Record))
		}
		m, err := CloudEvent(n)
		if err != nil || m.Type != TypeChange || m.ID != "C" || m.Subject != tt.change.URL || string(m.Body) != string(n.Record) {
			t.Errorf("%s: as a CloudEvent %s %s %s, %v", name, m.Type, m.ID, m.Subject, err)
		}
	}
}
