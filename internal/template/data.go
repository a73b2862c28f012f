package template

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vokter/vokter/pipeline"
)

// data is what a template sees of n: maps, lists and texts, never our types, whose methods
// it could call, and no numbers, which it could count to.
func data(n pipeline.Notification) map[string]any {
	d := map[string]any{
		"status": n.Status, "type": n.Type, "id": n.ID, "url": clean(n.URL), "host": host(n.URL), "client": clean(n.Client),
		"title": clean(n.Title), "language": clean(n.Language), "change": n.Change, "reason": clean(n.Reason),
		"timestamp": moment(n.Time), "version": number(n.Version), "truncated": truth(n.Truncated),
		"diffs": diffs(n.Diffs), "keywords": keywords(n.Diffs), "health": health(n.Health),
	}
	return d
}

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

// health is empty where h is nil.
func health(h *pipeline.Health) map[string]any {
	if h == nil {
		return map[string]any{}
	}
	d := map[string]any{
		"id": h.ID, "event": string(h.Event), "time": moment(h.Time), "url": clean(h.URL), "document": clean(h.Document),
		"receiver": "", "class": clean(h.Class), "reason": clean(h.Reason), "since": moment(h.Since), "count": strconv.Itoa(h.Count),
	}
	if h.Receiver != nil {
		d["receiver"] = clean(h.Receiver.ID())
	}
	urls := make([]string, len(h.URLs))
	for i, u := range h.URLs {
		urls[i] = clean(u)
	}
	d["urls"] = urls
	return d
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return clean(u.Host)
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

// clean returns s in one line, without what steers a screen, at most maxValue long.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	for len(s) > maxValue/4 {
		s = strings.ToValidUTF8(s[:maxValue/4], "")
	}
	return s
}
