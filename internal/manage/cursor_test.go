package manage

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect/client"
)

// TestCursorsAreSealed: a cursor shows nothing, and only the list and the token that got it can use it.
func TestCursorsAreSealed(t *testing.T) {
	base := tenants(t)
	get := func(token, path string) (status int, next, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+client.Prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		var part struct{ Next string }
		_ = json.Unmarshal(b, &part)
		return resp.StatusCode, part.Next, string(b)
	}
	for _, list := range []string{"/pages", "/subscriptions"} {
		_, next, body := get(aToken, list+"?limit=1")
		plain, err := base64.RawURLEncoding.DecodeString(next)
		if next == "" || err != nil || strings.Contains(string(plain), "example") {
			t.Errorf("%s: got the cursor %q in %s", list, plain, body)
		}
		after := "?limit=1&cursor=" + url.QueryEscape(next)
		if status, _, body := get(aToken, list+after); status != 200 || strings.Contains(body, `example.com/a"`) {
			t.Errorf("%s goes on with %d %s", list, status, body)
		}
		if status, _, body := get("token of a", list+after); status != 422 || !strings.Contains(body, "begin without one") {
			t.Errorf("%s with the cursor of another token: got %d %s", list, status, body)
		}
		if status, _, _ := get(aToken, "/dead-letters"+after); status != 422 {
			t.Errorf("the cursor of %s for another list: got %d", list, status)
		}
		plainCursor := base64.RawURLEncoding.EncodeToString([]byte("https://example.com/a"))
		if status, _, _ := get("token of a", list+"?cursor="+plainCursor); status != 422 {
			t.Errorf("%s with a cursor of one's own: got %d", list, status)
		}
	}
}
