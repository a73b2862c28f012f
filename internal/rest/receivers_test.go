package rest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/rest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

func TestReceiversAreWebhooksToTheirNames(t *testing.T) {
	bodies := make(chan string, 3)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- r.URL.Path + " " + string(b)
	}))
	defer server.Close()
	n := pipeline.Notification{ID: "N", Status: pipeline.StatusOK, URL: "http://example.com/", Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Snippet: "Argus."}}}
	config := webhook.Config{Format: webhook.FormatV1, Connection: registry.Connection{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}

	allowed, err := rest.NewReceivers(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := allowed.SinkOf(server.URL+"/a").Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got, want := <-bodies, `/a {"status":"ok","url":"http://example.com/","diffs":[{"action":"inserted","keyword":"argus","snippet":"Argus."}]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if allowed.SinkOf(server.URL+"/a") != allowed.SinkOf(server.URL+"/a") {
		t.Error("one URL has two sinks")
	}
	for _, name := range []string{"", "hook", "ftp://example.com/", "http://example.com/a b", "http://example.com/" + strings.Repeat("x", 1000)} {
		if s := allowed.SinkOf(name); s != nil {
			t.Errorf("%q has the sink %v", name, s)
		}
	}

	guarded, err := rest.NewReceivers(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := guarded.SinkOf(server.URL+"/a").Deliver(t.Context(), n); err == nil || !strings.Contains(err.Error(), "127.0.0.1") || len(bodies) > 0 {
		t.Errorf("a loopback address that is not allowed: %v, %d requests", err, len(bodies))
	}

	config.Verify = true
	asking, err := rest.NewReceivers(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := asking.SinkOf(server.URL+"/b").Deliver(t.Context(), n); err == nil {
		t.Error("a client that did not prove itself was sent a notification")
	}
	if got := <-bodies; !strings.HasPrefix(got, `/b {"type":"verification","challenge":"`) || len(bodies) > 0 {
		t.Errorf("sent was %s, and %d more", got, len(bodies))
	}
}

// service answers every command with err.
type service struct{ err error }

func (s service) Subscribe(context.Context, pipeline.Subscription) error { return s.err }
func (s service) AccessClients(string) ([]string, bool)                  { return nil, false }
func (s service) CancelTo(context.Context, string, string, string) error { return s.err }

func TestRefusals(t *testing.T) {
	const body = `{"documentUrl":"http://example.com/","clientUrl":"http://example.com/in","keywords":["argus"]}`
	for name, tt := range map[string]struct {
		err    error
		origin string
		body   string
		status int
		want   string
	}{
		"not ready":        {err: errors.New("the disk is full"), body: body, status: 503, want: `{"code":9,"message":"The request could not be carried out now; send it again later."}`},
		"keywords":         {err: &pipeline.FieldError{Field: "keywords"}, body: body, status: 400, want: `{"code":3,"message":"You need to provide at least one valid keyword."}`},
		"another web site": {origin: "https://evil.example", body: body, status: 403, want: `{"code":10,"message":"The request comes from another web site."}`},
		"too large":        {body: body + strings.Repeat(" ", 1<<20), status: 415, want: `{"code":6,"message":"The request body has an invalid format."}`},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/vokter/v1/subscribe", strings.NewReader(tt.body))
		req.Header.Set("Content-Type", "application/json")
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		got := httptest.NewRecorder()
		rest.New(service{tt.err}, rest.Options{}).ServeHTTP(got, req)
		if got.Code != tt.status || got.Body.String() != tt.want {
			t.Errorf("%s: got %d %s", name, got.Code, got.Body)
		}
	}
}

// TestRebinding holds that a name that leads to a loopback address is refused there.
func TestRebinding(t *testing.T) {
	server := httptest.NewServer(rest.New(service{}, rest.Options{}))
	defer server.Close()
	for host, want := range map[string]int{"": 200, "localhost": 200, "evil.example": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/vokter/v1/exampleResponse", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("host %q: %d", host, resp.StatusCode)
		}
	}
}
