package manage

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
)

// silentSink delivers to nobody.
type silentSink struct{}

func (silentSink) Deliver(context.Context, pipeline.Notification) error { return nil }

// tenants serves a Router with a page of client a, a page of client b, and a page of both, and
// returns the URL of the API.
func tenants(t *testing.T) string {
	t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<p>words") }))
	t.Cleanup(pages.Close)
	var subs []pipeline.Subscription
	for _, s := range []struct{ path, client, sel string }{{"/a", "a", ""}, {"/b", "b", ""}, {"/both", "a", ""}, {"/both", "b", "p"}} {
		sub := pipeline.Subscription{URL: "https://example.com" + s.path, Client: s.client, Keywords: []string{"secret of " + s.client}, Sinks: []string{"sink-" + s.client}, Interval: pipeline.Never}
		if s.sel != "" {
			sub.Select = []pipeline.Selector{pipeline.ParseSelector(s.sel)}
		}
		subs = append(subs, sub)
	}
	r, err := vokter.New(vokter.Config{Sinks: map[string]pipeline.Sink{"sink-a": silentSink{}, "sink-b": silentSink{}}, Subscriptions: subs})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-r.Running()
	access := new(Access)
	all := []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}
	if err := access.Configure(config.API{Tokens: []config.Token{
		{Name: "a", Hash: config.HashToken("token of a"), Scopes: all, Clients: []string{"a"}, Sinks: []string{"sink-a"}},
		{Name: "slow", Hash: config.HashToken("slow token"), Scopes: all, Rate: 0.001},
	}}); err != nil {
		t.Fatal(err)
	}
	a, err := New(r, Options{Token: aToken, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	base := serveURL(t, a)
	c := client.New(base, aToken)
	t.Cleanup(c.Close)
	for l, err := c.Subscriptions(t.Context(), client.SubscriptionFilter{}); len(l.Subscriptions) < len(subs); l, err = c.Subscriptions(t.Context(), client.SubscriptionFilter{}) {
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestTenants: a token with clients sees and changes nothing of other clients.
func TestTenants(t *testing.T) {
	base := tenants(t)
	a := map[string]string{"Authorization": "Bearer token of a"}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/explain?url=https://example.com/b&client=x", "", 404, `https://example.com/b is not watched for client \"x\"`},
		{"GET", "/explain?url=https://example.com/nobody&client=x", "", 404, `https://example.com/nobody is not watched for client \"x\"`},
		{"GET", "/pages?url=https://example.com/b", "", 200, `{"pages":[]}`},
		{"GET", "/pages?client=b", "", 200, `{"pages":[]}`},
		{"GET", "/pages", "", 200, "https://example.com/a"},
		{"GET", "/subscriptions", "", 200, "https://example.com/both"},
		{"GET", "/subscriptions?client=b", "", 200, `{"subscriptions":[]}`},
		{"GET", "/subscriptions?limit=1", "", 200, `"next":`},
		{"GET", "/explain?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/explain?url=https://example.com/both&client=b", "", 404, "is not watched"},
		{"GET", "/explain?url=https://example.com/both", "", 200, "secret of a"},
		{"GET", "/versions?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/versions?url=https://example.com/both&client=b", "", 404, ""},
		{"GET", "/screenshot?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/text?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/diff?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/changes?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/occurrences?term=words&url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/dead-letters?client=b", "", 200, `{"dead_letters":[]}`},
		{"GET", "/deliveries?url=https://example.com/b", "", 404, "is not watched"},
		{"GET", "/deliveries", "", 200, `{"deliveries":[]}`},
		{"GET", "/receivers", "", 403, "some clients only"},
		{"GET", "/backup", "", 403, "some clients only"},
		{"POST", "/retry", `{}`, 403, "some clients only"},
		{"POST", "/replay", `{}`, 403, "some clients only"},
		{"POST", "/check", `{"url":"https://example.com/b"}`, 404, "is not watched"},
		{"POST", "/cancel", `{"url":"https://example.com/b","client":"b"}`, 404, "no such subscription"},
		{"POST", "/pause", `{"url":"https://example.com/both","client":"b"}`, 404, "no such subscription"},
		{"POST", "/resume", `{"url":"https://example.com/both","client":"b"}`, 404, "no such subscription"},
		{"POST", "/resume", `{"url":"https://example.com/both"}`, 404, "no such subscription"},
		{"POST", "/subscriptions", `{"url":"https://example.com/c","client":"b","keywords":["k"],"sinks":["sink-a"]}`, 422, "may not subscribe for this client"},
		{"POST", "/subscriptions", `{"url":"https://example.com/c","client":"a","keywords":["k"],"sinks":["sink-b"]}`, 422, "may not use this sink"},
		{"POST", "/subscriptions", `{"url":"https://example.com/c","client":"a","keywords":["k"],"sinks":["sink-a"],"interval":"never"}`, 201, ""},
		{"POST", "/subscriptions", `{"url":"https://example.com/c","client":"a","keywords":["k"],"sinks":["sink-a"],"interval":"never"}`, 200, ""},
		{"POST", "/subscriptions", `{"url":"https://example.com/c","client":"a","keywords":["l"],"sinks":["sink-a"],"interval":"never"}`, 409, ""},
		{"POST", "/pause", `{"url":"https://example.com/a","client":"a"}`, 204, ""},
		{"GET", "/subscriptions?state=paused", "", 200, "https://example.com/a"},
		{"POST", "/pause", `{"url":"https://example.com/a","client":"a","until":"2001-01-01T00:00:00Z"}`, 422, "2001-01-01T00:00:00Z has passed"},
		{"POST", "/pause", `{"url":"https://example.com/a","client":"a","until":"9999-12-31T23:00:00-05:00"}`, 422, "in the year 10000"},
		{"POST", "/pause", `{"url":"https://example.com/a","client":"a","until":"tomorrow"}`, 422, "until"},
		{"POST", "/pause", `{"url":"https://example.com/a","client":"a","until":"2125-01-01T00:00:00Z"}`, 204, ""},
		{"GET", "/subscriptions?state=paused", "", 200, `"paused_until":"2125-01-01T00:00:00Z"`},
		{"POST", "/cancel", `{"url":"https://example.com/both","client":"a"}`, 204, ""},
		{"GET", "/pages?url=https://example.com/both", "", 200, `{"pages":[]}`},
	} {
		status, _, body := send(t, c.method, base+client.Prefix+c.path, c.body, a)
		if status != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s %s: got %d %s, want %d and %q", c.method, c.path, c.body, status, body, c.status, c.want)
		}
		for _, hidden := range []string{"secret of b", "sink-b\"", `"client":"b"`, "https://example.com/b\""} {
			if status < 400 && strings.Contains(string(body), hidden) {
				t.Errorf("%s %s: it shows %q: %s", c.method, c.path, hidden, body)
			}
		}
	}
	// The owner of the data directory sees that nothing of b has changed.
	status, _, body := send(t, "GET", base+client.Prefix+"/subscriptions?client=b&state=active", "", nil)
	if status != 200 || strings.Count(string(body), `"client":"b"`) != 2 {
		t.Errorf("got %d %s", status, body)
	}
}

func TestRate(t *testing.T) {
	base := tenants(t)
	slow := map[string]string{"Authorization": "Bearer slow token"}
	for i, want := range []int{200, 429} {
		status, header, body := send(t, "GET", base+client.Prefix+"/process", "", slow)
		if status != want || (header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d: got %d %v %s, want %d", i, status, header, body, want)
		}
	}
}

// TestCORS: only the pages of configured origins may use the API from a browser.
func TestCORS(t *testing.T) {
	const trusted, other = "https://dashboard.example.com", "https://evil.example.com"
	base := serveURL(t, newAPIOf(t, &fake{}, config.API{CORS: []string{trusted}}))
	for _, c := range []struct {
		method, origin string
		token          string
		want           int
	}{
		{"OPTIONS", trusted, "", 204}, {"OPTIONS", other, "", 403}, {"GET", trusted, "Bearer " + aToken, 200}, {"GET", trusted, "", 401}, {"GET", other, "Bearer " + aToken, 403},
	} {
		status, header, body := send(t, c.method, base+client.Prefix+"/pages", "", map[string]string{"Origin": c.origin, "Sec-Fetch-Site": "cross-site", "Authorization": c.token})
		allowed := header.Get("Access-Control-Allow-Origin")
		if status != c.want || (allowed == trusted) != (c.origin == trusted) || allowed == "*" {
			t.Errorf("%s from %s: got %d %v %s, want %d", c.method, c.origin, status, header, body, c.want)
		}
	}
}
