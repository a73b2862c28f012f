package manage

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect/client"
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
	for body, want := range map[string]string{
		`{"url":"https://example.com/","sinks":["a"],"confirm":1e400}`:                `"the number 1e400 is too large"`,
		`{"url":"https://example.com/","sinks":["a"],"confirm":9223372036854775808}`:  `"confirm: the number 9223372036854775808 is too large, or not written as a whole number"`,
		`{"url":"https://example.com/","sinks":["a"],"confirm":1e2}`:                  `"confirm: the number 1e2 is too large, or not written as a whole number"`,
		`{"url":"https://example.com/","sinks":["a"],"confirm":"x"}`:                  `"value":"x"`,
		`{"url":"https://example.com/","sinks":["a"],"interval":"soon"}`:              `expected string to be a duration such as 10m, bounds such as`,
		`{"url":` + strings.Repeat(`[`, 250_000) + strings.Repeat(`]`, 250_000) + `}`: `"location":"body"`,
		`{"url":` + strings.Repeat(`[`, 5_000) + strings.Repeat(`]`, 5_000) + `}`:     `"location":"body.url"`,
		`{"url":"` + strings.Repeat(`x`, 500_000):                                     `"location":"body"`,
		`{"url":{"a":[1,{"b":"` + strings.Repeat(`x`, 300) + `"}]}}`:                  `"location":"body.url"`,
	} {
		status, _, b := send(t, "POST", base+client.Prefix+"/subscriptions", body, nil)
		if status != 400 && status != 422 || !strings.Contains(string(b), want) || len(b) > 1000 {
			t.Errorf("%.80s: %d %.300s, want %s", body, status, b, want)
		}
	}
	for body, want := range map[string]string{`[{"a":1},{"a":{"a":2}}]`: "", `{"a":[{"b":1,"b":2}]}`: "b", `{"a":{"b":1},"c":"a","a":[]}`: "a", `}`: "", `{"a"`: ""} {
		if got := repeatedField([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
