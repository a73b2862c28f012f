package manage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// shelf is a fake that keeps subscriptions. Its pages are those of client acme.
type shelf struct {
	fake
	subs    []inspect.Subscription
	counted int
	trying  chan struct{} // unless it is nil, a preview sends when it begins, and receives before it ends
}

func (s *shelf) Pages(_ context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error) {
	s.counted++
	for _, sub := range s.subs {
		pages = append(pages, inspect.Page{URL: sub.URL, Subscriptions: []inspect.Subscription{sub}})
	}
	return pages, "", nil
}

func (s *shelf) Subscribe(_ context.Context, sub pipeline.Subscription) error {
	s.subs = append(s.subs, inspect.Subscription{Subscription: sub, Document: newClaim(sub).document})
	return nil
}

func (s *shelf) Preview(ctx context.Context, sub pipeline.Subscription, source bool) (inspect.Preview, error) {
	if s.trying != nil {
		s.trying <- struct{}{} // it has begun
		<-s.trying             // it may end
	}
	return s.fake.Preview(ctx, sub, source)
}

// TestQuota: a token has and does no more than its quota says, and is told what to do.
func TestQuota(t *testing.T) {
	s := new(shelf)
	scopes := []config.Scope{config.ScopeRead, config.ScopeWrite}
	a := newAPIOf(t, s, config.API{Tokens: []config.Token{
		{Name: "acme", Hash: config.HashToken("acme"), Scopes: scopes, Clients: []string{"acme"}, Quota: config.Quota{Subscriptions: 3, Pages: 12, Hosts: 2, Previews: 1, Streams: 1}},
	}})
	base := serveURL(t, a)
	acme := map[string]string{"Authorization": "Bearer acme"}
	for _, c := range []struct {
		url, more string
		status    int
		want      string
	}{
		{"https://a.example.com/1", ``, 201, ""},
		{"https://a.example.com/1", ``, 201, ""}, // this fake takes it twice
		{"https://a.example.com/2", `,"follow":{"max_pages":10}`, 201, ""},
		{"https://b.example.com/", ``, 403, "may watch 12 pages, has 12, and would have 13"},
		{"https://a.example.com/1", `,"select":[{"css":"p"}]`, 201, ""},
		{"https://a.example.com/2", ``, 201, ""}, // the client has it
		{"https://a.example.com/1", `,"select":[{"css":"h1"}]`, 403, `may have 3 subscriptions, and has 3; cancel one, or ask the operator to raise quota.subscriptions of the token`},
	} {
		body := fmt.Sprintf(`{"url":%q,"client":"acme","keywords":["k"],"sinks":["out"]%s}`, c.url, c.more)
		if status, _, got := send(t, "POST", base+client.Prefix+"/subscriptions", body, acme); status != c.status || !strings.Contains(string(got), c.want) {
			t.Errorf("%s%s: got %d %s, want %d %q", c.url, c.more, status, got, c.status, c.want)
		}
	}
	if s.counted != 1 {
		t.Errorf("all pages were read %d times", s.counted)
	}

	a.access.current.Load().callers[0].Quota = config.Quota{Hosts: 1}
	for more, want := range map[string]string{``: "may watch pages of 1 hosts, and has 1", `,"follow":{"same_host":false}`: "leave out same_host: false"} {
		host := "c.example.com"
		if more != "" {
			host = "a.example.com"
		}
		body := fmt.Sprintf(`{"url":"https://%s/","client":"acme","keywords":["k"],"sinks":["out"]%s}`, host, more)
		if status, _, got := send(t, "POST", base+client.Prefix+"/subscriptions", body, acme); status != 403 || !strings.Contains(string(got), want) {
			t.Errorf("%s: got %d %s", more, status, got)
		}
	}
}

// TestQuotaAtOnce: a token has no more previews and streams at once than its quota says.
func TestQuotaAtOnce(t *testing.T) {
	s := &shelf{trying: make(chan struct{}), fake: fake{observer: make(chan flow.Observer)}}
	base := serveURL(t, newAPIOf(t, s, config.API{Tokens: []config.Token{
		{Name: "acme", Hash: config.HashToken("acme"), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite}, Clients: []string{"acme"}, Quota: config.Quota{Previews: 1, Streams: 1}},
	}}))
	acme := map[string]string{"Authorization": "Bearer acme"}
	const preview = `{"subscription":{"url":"https://example.com/","sinks":[]}}`
	answered := make(chan int)
	go func() {
		status, _, _ := send(t, "POST", base+client.Prefix+"/preview", preview, acme)
		answered <- status
	}()
	<-s.trying
	status, header, body := send(t, "POST", base+client.Prefix+"/preview", preview, acme)
	if status != 429 || header.Get("Retry-After") == "" || !strings.Contains(string(body), `may have 1 previews at once, and has them; end one, or ask the operator to raise quota.previews of the token`) {
		t.Errorf("a second preview: got %d %v %s", status, header, body)
	}
	s.trying <- struct{}{}
	if status := <-answered; status != 200 {
		t.Errorf("the first preview: got %d", status)
	}

	ctx, end := context.WithCancel(t.Context())
	defer end()
	c := client.New(base, "acme")
	defer c.Close()
	go func() {
		answered <- 0
		_ = c.Events(ctx, client.EventFilter{}, func(any) error { return nil }) // it ends with ctx
	}()
	<-answered
	<-s.observer
	if status, header, body := send(t, "GET", base+client.Prefix+"/events", "", acme); status != 429 || header.Get("Retry-After") == "" || !strings.Contains(string(body), "may have 1 streams of events at once") {
		t.Errorf("a second stream: got %d %s", status, body)
	}
}

// guarded is a fake with pages that are fetched with credentials.
type guarded struct{ shelf }

func (*guarded) AccessClients(page string) ([]string, bool) {
	return []string{"partner"}, strings.Contains(page, "/private")
}

// TestAccessPages: a token for clients neither watches nor tries a page that is fetched with credentials, unless they
// are named there. A token for all does.
func TestAccessPages(t *testing.T) {
	s := new(guarded)
	scopes := []config.Scope{config.ScopeRead, config.ScopeWrite}
	base := serveURL(t, newAPIOf(t, s, config.API{Tokens: []config.Token{
		{Name: "acme", Hash: config.HashToken("acme"), Scopes: scopes, Clients: []string{"acme"}},
		{Name: "both", Hash: config.HashToken("both"), Scopes: scopes, Clients: []string{"acme", "partner"}},
	}}))
	for _, c := range []struct {
		token, path, client string
		want                bool
	}{
		{"acme", "/private", "acme", false}, {"acme", "/public", "acme", true}, {"both", "/private", "acme", false}, {"both", "/private", "partner", true}, {aToken, "/private", "acme", true},
	} {
		sub := fmt.Sprintf(`{"url":"https://example.com%s","client":%q,"keywords":["k"],"sinks":["out"]}`, c.path, c.client)
		for route, body := range map[string]string{"/subscriptions": sub, "/preview": `{"subscription":` + sub + `}`, "/subscriptions/change": `{"document":"D","subscription":` + sub + `}`} {
			want := c.want || route == "/preview" && c.token == "both"
			status, _, got := send(t, "POST", base+client.Prefix+route, body, map[string]string{"Authorization": "Bearer " + c.token})
			if want != (status < 300) || !want && (status != 422 || !strings.Contains(string(got), "ask the operator to add the client to clients of the access entry")) {
				t.Errorf("%+v %s: got %d %s", c, route, status, got)
			}
		}
	}
}
