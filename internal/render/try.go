package render

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TryTemplate renders what source makes of one notification of each sort, and of one whose page
// attacks, and returns the first failure. It is bounded as Render is; where the process
// must not suffer from it whatever happens, call it in another one.
func TryTemplate(source string) error {
	t := NewTemplate(source)
	if err := t.Validate(); err != nil {
		return err
	}
	for _, s := range samples() {
		if _, err := t.execute(context.Background(), s.notification, printing{}); err != nil {
			return fmt.Errorf("fails for %s: %w", s.name, err)
		}
	}
	return nil
}

// sample is a notification to try a template on.
type sample struct {
	name         string // completes "fails for"
	notification pipeline.Notification
}

func samples() []sample {
	change := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/terms", ID: "0123456789ABCDEFGHIJKLMNOP", Type: pipeline.NotificationType,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default", Version: 7, Title: "Terms of Service", Language: "en",
		Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "arbitration", Text: "binding arbitration", Snippet: "... through binding arbitration in ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "refund", Text: "a full refund", Snippet: "... you get a full refund within ...", Offset: 90},
		},
	}
	timeout := change
	timeout.Status, timeout.Reason, timeout.Diffs, timeout.Title, timeout.Version = pipeline.StatusTimeout, "answered 404 Not Found", nil, "", 0
	digest := change
	digest.Type = pipeline.NotificationTypeDigest
	for i := range 2 {
		digest.Items = append(digest.Items, pipeline.Item{
			ID: fmt.Sprint("ITEM", i), Time: change.Time, Version: uint64(6 + i), Title: change.Title, Change: change.Change, Diffs: 1,
		})
	}
	test := change
	test.Type, test.Title, test.Change, test.Version = pipeline.NotificationTypeTest, "Test message of vokter-stream", "", 0
	health := pipeline.Notification{
		Status: string(pipeline.HealthFailing), ID: change.ID, Type: pipeline.NotificationTypeHealth, Time: change.Time, Reason: timeout.Reason,
		Health: &pipeline.Health{
			ID: change.Change, Event: pipeline.HealthFailing, Time: change.Time, URL: change.URL, Class: "http", Reason: timeout.Reason,
			Since: change.Time, Count: 3,
		},
	}
	return []sample{
		{"an ordinary notification", change},
		{"a page that was given up, which has no diffs", timeout},
		{"a digest", digest},
		{"a health event, which has no diffs", health},
		{"a page that tries to break it", hostile(digest)},
		{"the message of a test", test},
	}
}

// hostile returns n as a page would have it that knows where its text goes, with as
// many differences as one notification has.
func hostile(n pipeline.Notification) pipeline.Notification {
	text := "{{.}} {{range 9}} <!channel> <@U1> <http://x|y> </script> [a](http://b) @everyone `*_~| %s %1000000d \" ' \\ \u202e\x00\r\n" +
		strings.Repeat("x", 100)
	n.Title, n.Diffs, n.Items = text, nil, nil
	for i := range 25 {
		item := pipeline.Item{ID: fmt.Sprint("ITEM", i), Time: n.Time, Title: text, Diffs: 2}
		n.Items = append(n.Items, item)
		for _, e := range []pipeline.Event{pipeline.Added, pipeline.Removed} {
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: e, Keyword: text, Text: text, Snippet: text})
		}
	}
	return n
}
