package router_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
)

// sequenceFetcher fetches a page whose body is the next one each time.
type sequenceFetcher struct {
	contentType string
	bodies      []string
	n           atomic.Int64
}

func (*sequenceFetcher) Schemes() []string { return []string{"http"} }

func (s *sequenceFetcher) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	body := s.bodies[min(int(s.n.Add(1)), len(s.bodies))-1]
	header := http.Header{}
	if s.contentType != "" {
		header.Set("Content-Type", s.contentType)
	}
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestFormats: a keyword that comes is reported of a page in each format, with its content type.
func TestFormats(t *testing.T) {
	for name, tc := range map[string]struct{ contentType, before, after, sel, wantType, want string }{
		"JSON":              {"application/json", `{"a": "x"}`, `{"a": "Argus"}`, "", "application/json", "a: Argus"},
		"a kind of JSON":    {"application/vnd.x+json; charset=utf-8", `{"a": "x"}`, `{"a": "Argus"}`, "/a", "application/vnd.x+json", "Argus"},
		"jq":                {"application/json", `[{"a": "x"}]`, `[{"a": "Argus"}]`, "jq:.[].a", "application/json", "Argus"},
		"JSON as HTML":      {"text/html", `{"a": "x"}`, `{"a": "Argus"}`, "", "application/json", "a: Argus"},
		"a file":            {"application/octet-stream", `<rss><channel><title>x</title></channel></rss>`, `<rss><channel><title>x</title><item><title>Argus</title></item></channel></rss>`, "", "application/rss+xml", "Argus"},
		"no type":           {"", "BEGIN:VCALENDAR\nSUMMARY:x\nEND:VCALENDAR", "BEGIN:VCALENDAR\nSUMMARY:Argus\nEND:VCALENDAR", "", "text/calendar", "Argus"},
		"a kind of XML":     {"application/vnd.x+xml", "<a><b>x</b></a>", "<a><b>Argus</b></a>", "//b", "application/vnd.x+xml", "Argus"},
		"CSV":               {"text/csv", "a,b\n", "a,Argus\n", "", "text/csv", "a · Argus"},
		"Markdown":          {"text/markdown", "- x", "- *Argus*", "em, li", "text/markdown", "Argus"},
		"text of any kind":  {"text/x-log", "x\ny\n", "x\nArgus\n", "lines:2-", "text/x-log", "Argus"},
		"Shift_JIS in HTML": {"text/html; charset=shift_jis", "<p>\x93\xfa</p>", "<p>\x93\xfa</p><p>Argus\x8c\xa9</p>", "", "text/html", "Argus見"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox()
			cfg := watchConfig(newSite(t, ""), m, "", "Argus")
			cfg.Readers = []pipeline.Reader{markdown.New()}
			cfg.Fetchers = []pipeline.Fetcher{&sequenceFetcher{contentType: tc.contentType, bodies: []string{tc.before, tc.after}}}
			if tc.sel != "" {
				cfg.Subscriptions[0].Select = []pipeline.Selector{pipeline.ParseSelector(tc.sel)}
			}
			cfg.Checks = 2
			runToEnd(t, cfg)
			got := m.take()
			if len(got) != 1 || got[0].ContentType != tc.wantType || got[0].Diffs[0].Snippet != tc.want {
				t.Errorf("got %+v, want %q in %s", got, tc.want, tc.wantType)
			}
		})
	}
}
