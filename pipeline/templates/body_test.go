package templates

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// hostileText is page text that would end a string, an attribute or a field.
const hostileText = `a"b\c</script>&x=1 <b> {{.}} ` + "\u2028"

// TestBodyEscapes: what a value says stays within the string, field or element that it stands in.
func TestBodyEscapes(t *testing.T) {
	n := render.Samples()[0].Notification
	n.Title = hostileText
	n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: hostileText, Text: hostileText, Snippet: hostileText})
	title := cleanText(hostileText)
	for _, tt := range []struct {
		source, mediaType, want string
	}{
		{`{"a": {{json .title}}}`, "application/json", title},
		{`{"a": "{{.title}}"}`, "application/json; charset=utf-8", title},
		{`{"a": {{.title | upper | json}}}`, "application/vnd.example+json", strings.ToUpper(title)},
		{`{"a": {{printf "%s." .title | json}}}`, "application/json", title + "."},
		{`{"a": "{{html .title}}"}`, "application/json", render.HTML(title)},
		{`{"a": {{html .title | json}}}`, "application/json", render.HTML(title)},
		{`{"a": "{{range $i, $d := .diffs}}{{if eq $i 2}}{{$d.snippet}}{{end}}{{end}}"}`, "application/json", title},
		{`a={{.title}}`, "application/x-www-form-urlencoded", title},
		{`a={{json .title}}`, "application/x-www-form-urlencoded", string(mustBytes(json.Marshal(title)))},
		{`{{.title}}`, "text/xml", render.HTML(title)},
		{`{{.title}}`, "application/atom+xml", render.HTML(title)},
		{`{{.title}}`, "text/plain", title},
		{`{{.title}}`, "application/x-unheard-of", title},
	} {
		b, err := render.CompileBody("body", New(tt.source), tt.mediaType)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		text, err := b.Render(t.Context(), n)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		got := text
		switch {
		case strings.Contains(tt.mediaType, "json"):
			var v struct{ A string }
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Errorf("%s: %v in %s", tt.source, err, text)
			}
			got = v.A
		case strings.HasPrefix(text, "a="):
			values, err := url.ParseQuery(text)
			if err != nil || len(values) != 1 {
				t.Errorf("%s: %v, %v", tt.source, values, err)
			}
			got = values.Get("a")
			if strings.Contains(tt.source, "json") {
				var s string
				if err := json.Unmarshal([]byte(got), &s); err != nil || s != title {
					t.Errorf("%s: %q, %v", tt.source, s, err)
				}
				continue
			}
		}
		if got != tt.want {
			t.Errorf("%s as %s: got %q, want %q", tt.source, tt.mediaType, got, tt.want)
		}
	}
}

func mustBytes(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestBodyOfLists: json writes lists and mappings.
func TestBodyOfLists(t *testing.T) {
	b, err := render.CompileBody("body", New(`{"diffs": {{json .diffs}}, "keywords": {{json .keywords}}, "health": {{json .health}}, "n": {{json (len .diffs)}}}`), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Render(t.Context(), render.Samples()[0].Notification)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Diffs    []struct{ Event, Keyword, Text, Snippet string }
		Keywords []string
		Health   map[string]any
		N        int
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Diffs) != 2 || v.Diffs[1].Keyword != "refund" || len(v.Keywords) != 2 || v.Health == nil || v.N != 2 {
		t.Errorf("got %+v of %s", v, text)
	}
}

// TestBodyRefusals: what would not be JSON for one of the notifications is refused with where.
func TestBodyRefusals(t *testing.T) {
	const secret = "S3CRET"
	for source, want := range map[string]string{
		`{"key": "` + secret + `", "a": {{.title}}}`:                   "fails for an ordinary notification: the body is no JSON in line 1",
		"{\n\"key\": \"" + secret + "\",\n\"a\": {{json .title}},\n}":  "the body is no JSON in line 4",
		`{"a": "{{json .title}}", "key": "` + secret + `"}`:            "the body is no JSON",
		`{"a": {{json .title}}`:                                        "the body is no JSON",
		`{{json .title}} {{json .title}}`:                              "the body is no JSON",
		`{"a": {{(index .diffs 0).text | json}}}`:                      "fails for a page that cannot be read, which has no diffs",
		`{"a": {{if eq .type "health"}}{{.title}}{{else}}1{{end}}}`:    "fails for a health event",
		`{"a": {{if eq .type "digest"}}{{.snippet}}{{else}}1{{end}}}`:  "fails for a digest",
		`{"a": {{json .titel}}}`:                                       "line 1: ",
		`{"a": {{jsn .title}}}`:                                        `there is no function "jsn"`,
		`{"a": {{range 9}}{{end}}1}`:                                   "line 1: range goes over a field",
		`{{if eq .type "test"}}{{else}}1{{end}}`:                       "fails for the message of a test: it says nothing",
		`{"a": [{{range $i, $d := .diffs}}{{if $i}},{{end}}1{{end}}]}`: "",
		`"{{.title}}"`: "",
	} {
		_, err := render.CompileBody("body", New(source), "application/json")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", source, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "body: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret)):
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

// TestBodyThatFails: a notification without a body is refused, and not sent in another form.
func TestBodyThatFails(t *testing.T) {
	b, err := render.CompileBody("body", New(`{"a": {{if eq .language "xx"}}{{.title}}{{else}}1{{end}}}`), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	n := render.Samples()[0].Notification
	n.Language = "xx"
	_, err = b.Render(t.Context(), n)
	if class, _ := failure.ClassOf(err); class != failure.ClassRefused || !strings.Contains(err.Error(), "the template of the body failed: the body is no JSON") {
		t.Errorf("class %d of %v, want refused", class, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Render(ctx, render.Samples()[0].Notification); failure.IsAmbiguous(err) || err == nil {
		t.Errorf("got %v", err)
	} else if class, _ := failure.ClassOf(err); class != failure.ClassCanceled {
		t.Errorf("class %d of %v, want canceled", class, err)
	}
}

// TestLargeBody: a body may be larger than what a template says elsewhere, and is bounded.
func TestLargeBody(t *testing.T) {
	b, err := render.CompileBody("body", New(`{"diffs": {{json .diffs}}}`), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	n := render.Samples()[0].Notification
	for size, fits := range map[int]bool{20: true, 100: false} {
		n.Diffs = nil
		for range size {
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: "k", Snippet: strings.Repeat("x", maxText)})
		}
		if _, err := b.Render(t.Context(), n); (err == nil) != fits {
			t.Errorf("%d differences of 16 KB: %v", size, err)
		}
	}
}
