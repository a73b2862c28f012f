package manage

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestFieldsOfBodies holds that no field of a body is ignored silently.
func TestFieldsOfBodies(t *testing.T) {
	_, base := serve(t, &fake{})
	for body, want := range map[string]string{
		`{"url":"https://example.com/","client":"a"}`:                  "",
		`{"url":"https://example.com/","URL":"https://x/"}`:            "unexpected property",
		`{"url":"https://example.com/","Client":"a","client":"b"}`:     "unexpected property",
		`{"url":"https://example.com/","client":"a","client":"b"}`:     `field twice: \"client\"`,
		`{"url":"https://example.com/","client":"a","cl\u0069ent":""}`: `field twice: \"client\"`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v1/pause", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+aToken)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || (resp.StatusCode == http.StatusNoContent) != (want == "") || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s %s, %v; want %q", body, resp.Status, b, err, want)
		}
	}
	for body, want := range map[string]string{`[{"a":1},{"a":{"a":2}}]`: "", `{"a":[{"b":1,"b":2}]}`: "b", `{"a":{"b":1},"c":"a","a":[]}`: "a", `}`: "", `{"a"`: ""} {
		if got := repeatedField([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
