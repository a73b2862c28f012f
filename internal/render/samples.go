package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Sample is a notification to try a template on.
type Sample struct {
	Name         string // completes "fails for"
	Notification pipeline.Notification
}

// Samples returns a notification of each sort, and one of a hostile page.
func Samples() []Sample {
	change := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/terms", ID: "0123456789ABCDEFGHIJKLMNOP", Type: pipeline.NotificationType,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default", Version: 7, Title: "Terms of Service", Language: "en",
		Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "arbitration", Text: "binding arbitration", Snippet: "... through binding arbitration in ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "refund", Text: "a full refund", Snippet: "... you get a full refund within ...", Offset: 90},
		},
	}
	every := change
	every.Diffs = []pipeline.Diff{
		{Event: pipeline.Removed, Text: "10", Snippet: "Price: 10", Offset: 40, Edit: 1},
		{Event: pipeline.Added, Text: "12", Snippet: "Price: 12", Offset: 40, Edit: 1},
	}
	timeout := change
	timeout.Status, timeout.Reason, timeout.Diffs, timeout.Title, timeout.Version = pipeline.StatusTimeout, "answered 404 Not Found", nil, "", 0
	recovered := timeout
	recovered.Status, recovered.Reason, recovered.Since = pipeline.StatusRecovered, "it answers again after 2h10m; 23 checks in a row had failed", change.Time.Add(-130*time.Minute)
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
	return []Sample{
		{"an ordinary notification", change},
		{"a page that cannot be read, which has no diffs", timeout},
		{"a digest", digest},
		{"a health event, which has no diffs", health},
		{"a page that tries to break it", hostileSample(digest)},
		{"the message of a test", test},
		{"a subscription without keywords", every},
		{"a page that answers again, which has no diffs", recovered},
	}
}

// hostileSample returns n with the texts of a page that attacks receivers, and with as many
// differences as one notification can have.
func hostileSample(n pipeline.Notification) pipeline.Notification {
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
