package render

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// maxText bounds each text of a notification, in bytes.
const maxText = 16 << 10

// data is what a template sees of n: maps, lists and texts, never our types, whose methods
// it could call, and no numbers, which it could count to. Each name is there whatever n is
// about; what does not apply is empty.
func data(n pipeline.Notification) map[string]any {
	m := MessageOf(n, Budget{Lines: 1})
	all := diffs(n.Diffs)
	return map[string]any{
		"status": n.Status, "type": n.Type, "id": n.ID, "change": n.Change, "timestamp": moment(n.Time), "version": number(n.Version),
		"headline": m.Headline, "details": strings.TrimSpace(Below(MessageOf(n, shown))), "title": m.Title, "url": cmp.Or(m.URL, Page(n.URL)), "host": host(m.URL), "reason": m.Reason,
		"client": clean(n.Client), "language": clean(n.Language), "truncated": truth(n.Truncated), "omitted": number(uint64(n.Omitted)),
		"keywords": keywords(n.Diffs), "diffs": all, "items": items(n.Items, all), "health": health(n.Health),
	}
}

// shown bounds the text below the headline.
var shown = Budget{Total: 3000, Lines: 20}

func diffs(list []pipeline.Diff) []map[string]string {
	out := make([]map[string]string, len(list))
	for i, d := range list {
		out[i] = map[string]string{
			"event": string(d.Event), "keyword": clean(d.Keyword), "text": clean(d.Text), "snippet": clean(d.Snippet),
		}
	}
	return out
}

// keywords lists those of diffs, each once.
func keywords(diffs []pipeline.Diff) []string {
	var list []string
	for _, d := range diffs {
		if k := clean(d.Keyword); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// items are those of a digest, each with its part of all.
func items(list []pipeline.Item, all []map[string]string) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, item := range list {
		n := min(max(item.Diffs, 0), len(all))
		out[i] = map[string]any{
			"id": item.ID, "timestamp": moment(item.Time), "version": number(item.Version), "title": clean(item.Title),
			"change": item.Change, "diffs": all[:n], "truncated": truth(item.Truncated), "omitted": number(uint64(item.Omitted)),
		}
		all = all[n:]
	}
	return out
}

// health is empty where h is nil.
func health(h *pipeline.Health) map[string]any {
	if h == nil {
		return map[string]any{}
	}
	d := map[string]any{
		"id": h.ID, "event": string(h.Event), "time": moment(h.Time), "url": address(h.URL), "document": clean(h.Document),
		"receiver": "", "class": clean(h.Class), "reason": clean(h.Reason), "since": moment(h.Since), "count": strconv.Itoa(h.Count),
	}
	if h.Receiver != nil {
		d["receiver"] = clean(h.Receiver.Sink)
	}
	urls := make([]string, len(h.URLs))
	for i, u := range h.URLs {
		urls[i] = address(u)
	}
	d["urls"] = urls
	return d
}

// address is the URL of a page, without user information if it is one to follow, and else
// what names the page.
func address(raw string) string {
	if u := MessageOf(pipeline.Notification{URL: raw}, Budget{}).URL; u != "" {
		return u
	}
	return Page(raw)
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// clean returns s in one line, without what steers a screen.
func clean(s string) string { return Cut(Clean(s), maxText, Bytes) }
