package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/beside"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		url, secret string
		fields      []string
	}{
		{"https://example.com/hook?x=y", "shared", nil},
		{"http://user:password@[::1]:8080", "whsec_c2VjcmV0", nil},
		{"", "shared", []string{"url"}},
		{"example.com/hook", "shared", []string{"url"}},
		{"ftp://example.com/", "shared", []string{"url"}},
		{"https://", "shared", []string{"url"}},
		{"https://example.com:port/", "shared", []string{"url"}},
		{"https://%zz/SECRETPATH", "shared", []string{"url"}},
		{"https://example.com/", "", []string{"secret"}},
		{"https://example.com/", "whsec_", []string{"secret"}},
		{"mailto:me", "whsec_SECRET!", []string{"url", "secret"}},
	} {
		_, err := New(Config{URL: registry.NewSecret(tt.url), Secret: registry.NewSecret(tt.secret)})
		if (err == nil) != (len(tt.fields) == 0) {
			t.Errorf("%q: got %v, want errors of %v", tt.url, err, tt.fields)
			continue
		}
		if err == nil {
			continue
		}
		for _, f := range tt.fields {
			if !strings.Contains(err.Error(), f+": ") {
				t.Errorf("%q: %v does not name %s", tt.url, err, f)
			}
		}
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
			t.Errorf("%q: %T is no FieldError", tt.url, err)
		}
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: a secret is in %v", tt.url, err)
		}
	}
}

// TestUnset checks that an empty secret is refused, and that one that is left out is none.
func TestUnset(t *testing.T) {
	c := Config{URL: registry.NewSecret("https://example.com/"), OldSecret: registry.NewSecret(""), Bearer: registry.NewSecret("")}
	_, err := New(c)
	if err == nil || !strings.Contains(err.Error(), "bearer: it is empty") || !strings.Contains(err.Error(), "old_secret: it is empty") {
		t.Errorf("got %v, want both fields", err)
	}
	if _, err := New(Config{URL: c.URL}); err != nil {
		t.Error(err)
	}
}

func TestHeaders(t *testing.T) {
	got := catchRequest(t, sample().Time, sample(), Config{Headers: map[string]registry.Secret{"x-api-key": registry.NewSecret("k3y"), "Accept": registry.NewSecret("a, b\tc")}, Bearer: registry.NewSecret("t0ken=="), IdempotencyKey: true})
	for name, want := range map[string]string{
		"X-Api-Key": "k3y", "Accept": "a, b\tc", "Authorization": "Bearer t0ken==", "Idempotency-Key": `"` + sample().ID + `"`,
		"Content-Type": mediaJSON, "Webhook-Id": sample().ID,
	} {
		if v := got.header.Values(name); !slices.Equal(v, []string{want}) {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
	if got := quoteID(`a"b\c`); got != `"a\"b\\c"` {
		t.Errorf("got %s", got)
	}
}

// TestMistakes checks what is said, and where, and that no value is quoted.
func TestMistakes(t *testing.T) {
	const secret = "S3CRET"
	header := func(name, value string) Config {
		return Config{Headers: map[string]registry.Secret{name: registry.NewSecret(value)}}
	}
	for _, tt := range []struct {
		c           Config
		field, want string
	}{
		{header("Content-Type", secret), "headers.Content-Type", "it follows from format"},
		{header("user-agent", secret), "headers.user-agent", "it names this program"},
		{header("webhook-id", secret), "headers.webhook-id", "it names the notification"},
		{header("Webhook-Signature", secret), "headers.Webhook-Signature", "it follows from secret"},
		{header("idempotency-key", secret), "headers.idempotency-key", "write idempotency_key: true"},
		{header("host", secret), "headers.host", "it belongs to the connection"},
		{header("Transfer-Encoding", secret), "headers.Transfer-Encoding", "it belongs to the connection"},
		{header("ce-id", secret), "headers.ce-id", "attributes of a CloudEvent"},
		{header("X Key", secret), "headers.X Key", "not the name of a header"},
		{header("X-Key", secret+"\r\nX-Injected: x"), "headers.X-Key", "a line break"},
		{header("X-Key", secret+"\x00"), "headers.X-Key", "not plain ASCII"},
		{header("X-Key", secret+"ä"), "headers.X-Key", "not plain ASCII"},
		{header("X-Key", " "+secret), "headers.X-Key", "begins or ends with white space"},
		{header("X-Key", ""), "headers.X-Key", "it is empty"},
		{Config{Headers: map[string]registry.Secret{"X-A": registry.NewSecret(secret), "x-a": registry.NewSecret(secret)}}, "headers.x-a", "set twice"},
		{Config{Bearer: registry.NewSecret("Bearer " + secret)}, "bearer", "write only the token"},
		{Config{Bearer: registry.NewSecret(secret + " x")}, "bearer", "has a blank"},
		{Config{Bearer: registry.NewSecret(secret + "\n")}, "bearer", "a line break"},
		{Config{Bearer: registry.NewSecret(secret), Headers: header("authorization", secret).Headers}, "bearer", "headers has Authorization already"},
		{Config{URL: registry.NewSecret("https://u:p@example.com/"), Bearer: registry.NewSecret(secret)}, "bearer", "url has a user already"},
		{Config{URL: registry.NewSecret("https://u:p@example.com/"), Headers: header("authorization", secret).Headers}, "headers.Authorization", "url has a user already"},
		{Config{Secret: registry.NewSecret("new"), OldSecret: registry.NewSecret("whsec_?")}, "old_secret", ""},
		{Config{Format: "v2"}, "format", "documented, v1, cloudevents"},
		{Config{Format: FormatCloudEvents, Mode: "batched"}, "mode", "structured, binary"},
		{Config{Mode: ModeBinary}, "mode", "it belongs to format: cloudevents"},
	} {
		if tt.c.URL.IsZero() {
			tt.c.URL = registry.NewSecret("https://example.com/")
		}
		w, err := New(tt.c)
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if w != nil || !ok || fe.Field != tt.field || !strings.Contains(fe.Reason, tt.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want %s: ... %s", err, tt.field, tt.want)
		}
	}
	all := Config{
		URL: registry.NewSecret("https://example.com/"), Format: FormatCloudEvents, Mode: ModeBinary, IdempotencyKey: true, Verify: true,
		Bearer: registry.NewSecret("t"), Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("k")},
	}
	if w, err := New(all); err != nil || !w.idempotent || !w.verify || w.mode != ModeBinary || w.bearer != "t" {
		t.Errorf("got %+v, %v", w, err)
	}
}

// TestValuesAreNoPartOfErrors has a receiver send them back where errors quote it.
func TestValuesAreNoPartOfErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", ":"+r.Header.Get("X-Key")+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	w := newSink(t, server.URL, Config{Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("S3CRETKEY")}, Bearer: registry.NewSecret("S3CRETTOKEN")})
	if err := w.Deliver(t.Context(), sample()); err == nil || strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("got %v", err)
	}
}

// TestIdempotencyKeyRepeats breaks a kept-alive connection under the second request: with the key
// it is sent once more within the attempt, without it is not.
func TestIdempotencyKeyRepeats(t *testing.T) {
	for _, key := range []bool{true, false} {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == 2 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusNoContent)
		}))
		defer server.Close()
		w := newSink(t, server.URL, Config{IdempotencyKey: key})
		if err := w.Deliver(t.Context(), sample()); err != nil {
			t.Fatal(err)
		}
		err, n := w.Deliver(t.Context(), sample()), requests.Load()
		if key && (err != nil || n != 3) || !key && (!failure.IsAmbiguous(err) || n != 2) {
			t.Errorf("key %v: %d requests, %v", key, n, err)
		}
	}
}

// BenchmarkDeliver compares a webhook with a bare client of net/http that encodes the notification
// and posts as many bytes to the same receiver: x/bare is the ratio of the medians, taken in turns.
func BenchmarkDeliver(b *testing.B) {
	for name, c := range map[string]Config{
		"documented":  {Secret: registry.NewSecret("a secret of 24 characters")},
		"v1":          {Format: FormatV1},
		"cloudevents": {Format: FormatCloudEvents, Secret: registry.NewSecret("a secret of 24 characters"), Bearer: registry.NewSecret("token"), Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("k")}},
	} {
		b.Run(name, func(b *testing.B) {
			var last []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var v any
				body, err := io.ReadAll(r.Body)
				if err := errors.Join(err, json.Unmarshal(body, &v)); err != nil {
					b.Error(err)
				}
				last = body
				w.WriteHeader(http.StatusNoContent)
			}))
			defer server.Close()
			w := newSink(b, server.URL, c)
			n := sample()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			bare := func() error {
				if _, err := json.Marshal(n); err != nil {
					return err
				}
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL, bytes.NewReader(last))
				if err != nil {
					return err
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err
			}
			beside.Run(b, 1, func() error { return w.Deliver(b.Context(), n) }, bare)
		})
	}
}
