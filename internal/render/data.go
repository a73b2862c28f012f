package render

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// maxText is the largest size of each text of a notification, in bytes.
const maxText = 16 << 10

// templateData returns n as a template sees it: maps, lists and texts. It has no Go types, whose
// methods a template could call, and no numbers, to which a template could count. All names
// exist for every n; those that do not apply are empty.
func templateData(n pipeline.Notification) map[string]any {
	m := MessageOf(n, Budget{Lines: 1})
	all := diffData(n.Diffs)
	return map[string]any{
		"status": n.Status, "type": n.Type, "id": n.ID, "change": n.Change, "timestamp": formatTime(n.Time), "version": formatNumber(n.Version),
		"headline": m.Headline, "details": strings.TrimSpace(Below(MessageOf(n, detailsBudget))), "title": m.Title, "url": cmp.Or(m.URL, Page(n.URL)), "host": hostOf(m.URL), "link": m.Link, "reason": m.Reason,
		"client": cleanText(n.Client), "severity": n.Severity, "channel": cleanText(n.Channel), "language": cleanText(n.Language), "truncated": formatBool(n.Truncated), "omitted": formatNumber(uint64(n.Omitted)),
		"tags": cleanTexts(n.Tags), "value": valueData(n.Value), "keywords": keywordData(n.Diffs), "diffs": all, "items": itemData(n.Items, all), "health": healthData(n.Health),
	}
}

// detailsBudget is the budget of the text below the headline.
var detailsBudget = Budget{Total: 3000, Lines: 20}

func diffData(list []pipeline.Diff) []map[string]string {
	out := make([]map[string]string, len(list))
	for i, d := range list {
		out[i] = map[string]string{
			"event": string(d.Event), "keyword": cleanText(d.Keyword), "text": cleanText(d.Text), "snippet": cleanText(d.Snippet), "item": d.Item, "title": cleanText(d.Title), "edit": formatNumber(uint64(d.Edit)),
		}
	}
	return out
}

// keywordData lists the keywords of diffs, each once.
func keywordData(diffs []pipeline.Diff) []string {
	var list []string
	for _, d := range diffs {
		if k := cleanText(d.Keyword); k != "" && !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// valueData returns the data of v. All its values are empty if v is nil.
func valueData(v *pipeline.ValueChange) map[string]string {
	v = cmp.Or(v, &pipeline.ValueChange{})
	return map[string]string{"name": v.Name, "old": cleanText(v.Old), "new": cleanText(v.New), "unit": cleanText(v.Unit), "condition": cleanText(v.Condition)}
}

// cleanTexts returns texts as a template may have them.
func cleanTexts(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = cleanText(t)
	}
	return out
}

// itemData returns the items of a digest, each with its diffs from all.
func itemData(list []pipeline.Item, all []map[string]string) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, item := range list {
		n := min(max(item.Diffs, 0), len(all))
		out[i] = map[string]any{
			"id": item.ID, "timestamp": formatTime(item.Time), "version": formatNumber(item.Version), "title": cleanText(item.Title), "url": pageAddress(item.URL), "client": cleanText(item.Client), "severity": item.Severity,
			"change": item.Change, "value": valueData(item.Value), "diffs": all[:n], "truncated": formatBool(item.Truncated), "omitted": formatNumber(uint64(item.Omitted)),
		}
		all = all[n:]
	}
	return out
}

// healthData returns the data of h. All its values are empty if h is nil.
func healthData(h *pipeline.Health) map[string]any {
	if h == nil {
		return map[string]any{}
	}
	d := map[string]any{
		"id": h.ID, "event": string(h.Event), "time": formatTime(h.Time), "url": pageAddress(h.URL), "document": cleanText(h.Document),
		"receiver": "", "class": cleanText(h.Class), "reason": cleanText(h.Reason), "since": formatTime(h.Since), "count": strconv.Itoa(h.Count),
	}
	if h.Receiver != nil {
		d["receiver"] = cleanText(h.Receiver.Sink)
	}
	urls := make([]string, len(h.URLs))
	for i, u := range h.URLs {
		urls[i] = pageAddress(u)
	}
	d["urls"] = urls
	return d
}

// pageAddress returns the URL of a page without user information, or, if it is no http or https
// URL, a name of the page.
func pageAddress(raw string) string {
	if u := MessageOf(pipeline.Notification{URL: raw}, Budget{}).URL; u != "" {
		return u
	}
	return Page(raw)
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func formatNumber(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func formatBool(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// cleanText returns s in one line, without control characters.
func cleanText(s string) string { return Cut(Clean(s), maxText, Bytes) }

// TryTemplate executes source on one notification of each sort and on one of a hostile page,
// and returns the first error. It has the limits of Render.
func TryTemplate(source string) error {
	t := NewTemplate(source)
	if err := t.Validate(); err != nil {
		return err
	}
	for _, s := range samples() {
		if _, err := t.execute(context.Background(), s.notification, printOptions{}); err != nil {
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
	return []sample{
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
