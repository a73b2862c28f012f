package templates

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// maxText is the largest size of each text of a notification, in bytes.
const maxText = 16 << 10

// templateData returns n as a template sees it: maps, lists and texts. It has no Go types, whose
// methods a template could call, and no numbers, to which a template could count. All names
// exist for every n; those that do not apply are empty.
func templateData(n pipeline.Notification) map[string]any {
	m := render.MessageOf(n, render.Budget{Lines: 1})
	all := diffData(n.Diffs)
	return map[string]any{
		"status": n.Status, "type": n.Type, "id": n.ID, "change": n.Change, "time": formatTime(n.Time), "version": formatNumber(n.Version),
		"headline": m.Headline, "details": strings.TrimSpace(render.Below(render.MessageOf(n, detailsBudget))), "title": m.Title, "url": cmp.Or(m.URL, render.Page(n.URL)), "host": hostOf(m.URL), "link": m.Link, "reason": m.Reason,
		"client": cleanText(n.Client), "severity": n.Severity, "channel": cleanText(n.Channel), "language": cleanText(n.Language), "truncated": formatBool(n.Truncated), "omitted": formatNumber(uint64(n.Omitted)),
		"tags": cleanTexts(n.Tags), "value": valueData(n.Value), "keywords": keywordData(n.Diffs), "diffs": all, "items": itemData(n.Items, all), "health": healthData(n.Health),
	}
}

// detailsBudget is the budget of the text below the headline.
var detailsBudget = render.Budget{Total: 3000, Lines: 20}

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
			"id": item.ID, "time": formatTime(item.Time), "version": formatNumber(item.Version), "title": cleanText(item.Title), "url": pageAddress(item.URL), "client": cleanText(item.Client), "severity": item.Severity,
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
	if u := render.MessageOf(pipeline.Notification{URL: raw}, render.Budget{}).URL; u != "" {
		return u
	}
	return render.Page(raw)
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
func cleanText(s string) string { return render.Cut(render.Clean(s), maxText, render.Bytes) }
