package manage

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
)

// TestHistoryRoundTrip asks for versions, texts, differences and occurrences over HTTP.
func TestHistoryRoundTrip(t *testing.T) {
	f := &fake{}
	c, _ := serve(t, f)
	const page = "https://example.com/?a=1&b=2"
	document := inspect.DocumentFilter{Document: "D1", Client: "a b", Select: "main > p"}
	offset := 0
	found := inspect.OccurrenceFilter{
		DocumentFilter: document, Version: 3, MatchCase: true, IgnoreDiacritics: true, Stem: true, FilterStopwords: true,
		Match: "terms", Language: "de", SnippetOffset: &offset, Limit: 5,
	}
	different := inspect.DiffFilter{DocumentFilter: document, From: 2, To: 5, Context: -1}
	if h, err := c.Versions(t.Context(), page, document); err != nil || h.URL != page || h.Versions[0].N != 7 {
		t.Errorf("versions: %+v, %v", h, err)
	}
	if x, err := c.Text(t.Context(), page, 4, document); err != nil || x.Text != "words" || x.N != 4 {
		t.Errorf("text: %+v, %v", x, err)
	}
	if s, err := c.Screenshot(t.Context(), page, 4, document); err != nil || s.Version != 4 || s.ContentType != "image/webp" || string(s.Image) != "RIFF" {
		t.Errorf("screenshot: %+v, %v", s, err)
	}
	if d, err := c.Diff(t.Context(), page, different); err != nil || len(d.Rows) != 1 || d.Rows[0].Skipped != 2 {
		t.Errorf("diff: %+v, %v", d, err)
	}
	if o, err := c.Occurrences(t.Context(), page, "a & b", found); err != nil || o.Term != "a & b" {
		t.Errorf("occurrences: %+v, %v", o, err)
	}
	if _, err := c.Diff(t.Context(), page, inspect.DiffFilter{}); err != nil {
		t.Errorf("the last difference: %v", err)
	}
	if h, err := c.Changes(t.Context(), page, document, 5); err != nil || len(h.Changes) != 1 || h.Changes[0].Version != 2 {
		t.Errorf("changes: %+v, %v", h, err)
	}
	want := []any{page, document, page, uint64(4), document, page, uint64(4), document, page, different, page, "a & b", found, page, inspect.DiffFilter{}, page, document, 5}
	if !reflect.DeepEqual(f.asked, want) {
		t.Errorf("asked for %+v, want %+v", f.asked, want)
	}
}

// TestHistoryRefusesMistakes sends requests with invalid parameters.
func TestHistoryRefusesMistakes(t *testing.T) {
	f := &fake{}
	_, base := serve(t, f)
	for _, path := range []string{
		"/versions", "/versions?url=x", "/versions?url=https://example.com/&version=1", "/text?url=https://example.com/&version=-1",
		"/diff?url=https://example.com/&from=a", "/diff?url=https://example.com/&context=few", "/occurrences?url=https://example.com/&term=a&stem=yes",
		"/occurrences?url=https://example.com/&term=a&limit=many", "/occurrences?url=https://example.com/&term=a&snippet_offset=-1",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+client.Prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+aToken)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: answered %s", path, resp.Status)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("asked for %+v", f.asked)
	}
	f.err = &pipeline.FieldError{Field: "term", Reason: "has no word"}
	if status, _, b := send(t, "GET", base+client.Prefix+"/occurrences?url=https://example.com/&term=-", "", nil); status != 422 || !strings.Contains(string(b), `"location":"query.term"`) {
		t.Errorf("a term without words: %d %s", status, b)
	}
}
