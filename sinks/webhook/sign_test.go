package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/chattest"
)

// caught is what a receiver got.
type caught struct {
	header http.Header
	body   []byte
	method string
}

// catch delivers n with the webhook of c, whose URL is its own, and returns the request.
func catch(t *testing.T, now time.Time, n pipeline.Notification, c Config) caught {
	t.Helper()
	var got caught
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		got = caught{r.Header, body, r.Method}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	w := made(t, server.URL, c)
	w.post.Now = func() time.Time { return now }
	if err := w.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return got
}

// made returns the webhook of c to a server on this machine.
func made(t testing.TB, rawURL string, c Config) *Webhook {
	t.Helper()
	c.URL, c.Allow = registry.NewSecret(rawURL), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func sample() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/", ID: "0123456789ABCDEFGHIJKLMNOP", Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Client: "default", Version: 7, Title: "Argus <Panoptes>",
		Language: "en", Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "In the 5th century and later, Argus' wakeful alertness ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "Zeus", Snippet: "... Zeus sent \"Hermes\" & others ...", Offset: 2},
		},
	}
}

func TestBody(t *testing.T) {
	timeout := pipeline.Notification{
		Status: pipeline.StatusTimeout, URL: "https://example.com/", ID: "T", Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default",
	}
	for name, n := range map[string]pipeline.Notification{"ok": sample(), "timeout": timeout} {
		got := catch(t, time.Now(), n, Config{})
		file := filepath.Join("testdata", name+".golden")
		if chattest.Updating() {
			if err := os.WriteFile(file, append(got.body, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.body)+"\n" != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.body, want)
		}
		if got.method != http.MethodPost || got.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.header.Get("User-Agent"), "vokter") {
			t.Errorf("%s: %s with %v", name, got.method, got.header)
		}
		for _, forbidden := range []string{"Idempotency-Key", "X-Idempotency-Key", standardwebhooks.HeaderWebhookSignature} {
			if _, ok := got.header[http.CanonicalHeaderKey(forbidden)]; ok {
				t.Errorf("%s: there is a header %s", name, forbidden)
			}
		}
	}
}

func TestSignatureIsVerifiedByAnother(t *testing.T) {
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 characters"))
	unpadded := strings.TrimRight("whsec_"+base64.StdEncoding.EncodeToString([]byte("another of 25 characters!!")), "=")
	for _, secret := range []string{encoded, unpadded, "any other text"} {
		got := catch(t, time.Now(), sample(), Config{Secret: registry.NewSecret(secret)})
		if err := verify(t, secret, got); err != nil {
			t.Errorf("%q: %v", secret, err)
		}
		got.body[3] ^= 1
		if err := verify(t, secret, got); err == nil {
			t.Errorf("%q: a changed body is verified", secret)
		}
	}
}

// verify checks a request with the module of those who wrote the standard.
func verify(t *testing.T, secret string, c caught) error {
	t.Helper()
	v, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		for len(encoded)%4 != 0 {
			encoded += "="
		}
		v, err = standardwebhooks.NewWebhook(encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(c.body, c.header)
}

func TestRotation(t *testing.T) {
	got := catch(t, time.Now(), sample(), Config{Secret: registry.NewSecret("the new secret"), OldSecret: registry.NewSecret("the old secret")})
	for _, secret := range []string{"the new secret", "the old secret"} {
		if err := verify(t, secret, got); err != nil {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if err := verify(t, "a third secret", got); err == nil {
		t.Error("an unknown secret is verified")
	}
}

func TestEachAttemptIsSignedAnew(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := catch(t, at, sample(), Config{Secret: registry.NewSecret("secret")})
	b := catch(t, at.Add(time.Minute), sample(), Config{Secret: registry.NewSecret("secret")})
	for name, same := range map[string]bool{"webhook-id": true, "webhook-timestamp": false, "webhook-signature": false} {
		if got := a.header.Get(name) == b.header.Get(name); got != same {
			t.Errorf("%s: the same on both attempts: %v, want %v", name, got, same)
		}
	}
	if got, want := a.header.Get("webhook-timestamp"), fmt.Sprint(at.Unix()); got != want {
		t.Errorf("webhook-timestamp %s, want %s", got, want)
	}
	if string(a.body) != string(b.body) {
		t.Error("the bodies differ")
	}
}

func TestDeliverWithoutDiffsIsNotNull(t *testing.T) {
	n := sample()
	n.Diffs = nil
	if got := catch(t, time.Now(), n, Config{}); !strings.Contains(string(got.body), `"diffs":[]`) {
		t.Errorf("got %s", got.body)
	}
}

func TestIDWithoutDot(t *testing.T) {
	for _, id := range []string{"", "a.b", "a\r\nX-Injected: b", "ä"} {
		n := sample()
		n.ID = id
		err := made(t, "https://example.com/", Config{}).Deliver(context.Background(), n)
		if class, _ := pipeline.ClassOf(err); err == nil || class != pipeline.ClassPermanent {
			t.Errorf("ID %q: got %v, want a permanent error", id, err)
		}
	}
}
