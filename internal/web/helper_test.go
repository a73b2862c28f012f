package web

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// fake is a pipeline with one page, whose text is hostile. It notes what it was asked to do.
type fake struct {
	manage.Service // panics for what no test asks
	done           []string
	subscribed     []pipeline.Subscription
	filters        []inspect.ListFilter
	more           int // if it is not 0, the list of pages goes on, and only its part of this number has pages
	err            error
	source         string           // of the page
	long           string           // a very long word in texts
	history        *inspect.History // of the document, if it is a value
	partial        bool             // of the changes
	pausedUntil    time.Time        // of the page and its subscription
	missing        string           // the state of a second document, which is not on the page
	baseline       bool             // the document never changed
	reason         string           // why the last check failed, if not for a hostile reason
	slow           time.Duration    // of a preview
}

const (
	hostile = `<script>alert("` + "\u202e" + `")</script>`
	pageURL = "https://example.com/?a=1&b=%3Cscript%3E"
	aToken  = "a-token-for-all-clients"
)

var someTime = time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)

func (f *fake) Pages(_ context.Context, lf inspect.ListFilter) ([]inspect.Page, string, error) {
	f.filters = append(f.filters, lf)
	value := ""
	if f.history != nil {
		value = f.history.Versions[0].Value
	}
	if !f.pausedUntil.IsZero() {
		return []inspect.Page{{URL: pageURL, State: inspect.StatePaused, PausedUntil: f.pausedUntil, Subscriptions: []inspect.Subscription{{
			State: inspect.StatePaused, PausedUntil: f.pausedUntil, Subscription: pipeline.Subscription{URL: pageURL, Client: "ann"}.WithDefaults(),
		}}}}, "", f.err
	}
	pages := []inspect.Page{{
		URL: pageURL, State: inspect.StateFailing, Reason: cmp.Or(f.reason, hostile), LastCheck: someTime, NextCheck: time.Now().Add(time.Hour),
		Documents: []inspect.Document{{ID: "d1", Title: hostile + f.long, Time: someTime, Baseline: f.baseline, Value: value}},
		Subscriptions: []inspect.Subscription{{Document: "d1", State: inspect.StateActive, Subscription: pipeline.Subscription{
			URL: pageURL, Client: hostile, Keywords: []string{hostile, "tea"}, Sinks: []string{hostile}, Tags: []string{hostile, "shop"},
		}.WithDefaults()}},
	}}
	if f.missing != "" {
		pages[0].Documents = append(pages[0].Documents, inspect.Document{ID: "d2", State: f.missing, View: pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}})
	}
	if f.more > 0 && lf.Limit > 0 {
		if f.more--; f.more > 0 {
			return nil, "next", f.err
		}
		return slices.Repeat(pages, lf.Limit), "next", f.err
	}
	return pages, "", f.err
}

func (f *fake) List(ctx context.Context, lf inspect.ListFilter) (inspect.Listing, error) {
	pages, _, err := f.Pages(ctx, lf)
	return inspect.Listing{Pages: pages, Receivers: []inspect.Receiver{{Sink: hostile, State: inspect.StateFailing, Reason: hostile, Dead: 1}}}, err
}

func (f *fake) Receivers(ctx context.Context, lf inspect.ListFilter) ([]inspect.Receiver, error) {
	l, err := f.List(ctx, lf)
	return l.Receivers, err
}

func (f *fake) match() inspect.Match {
	return inspect.Match{Client: hostile, Keywords: []string{hostile}, Sink: hostile, Delivery: inspect.DeliveryDead, Reason: hostile}
}

func (f *fake) version(n uint64) inspect.Version {
	return inspect.Version{N: n, Time: someTime, Title: hostile, Screenshot: n == 2, Size: &flow.Size{Added: 1}, Matches: []inspect.Match{f.match()}}
}

func (f *fake) Versions(context.Context, string, inspect.DocumentFilter) (inspect.History, error) {
	if f.history != nil {
		return *f.history, f.err
	}
	return inspect.History{URL: pageURL, Document: "d1", Versions: []inspect.Version{f.version(2), f.version(1)}}, f.err
}

func (f *fake) Text(_ context.Context, _ string, n uint64, _ inspect.DocumentFilter) (inspect.Text, error) {
	return inspect.Text{URL: pageURL, Document: "d1", Version: f.version(n), Text: "green tea " + hostile + f.long}, f.err
}

func (f *fake) Screenshot(_ context.Context, _ string, n uint64, df inspect.DocumentFilter) (inspect.Screenshot, error) {
	f.filters = append(f.filters, inspect.ListFilter{Clients: df.Clients})
	return inspect.Screenshot{URL: pageURL, Version: n, ContentType: "image/webp", Image: []byte(hostile)}, f.err
}

func (f *fake) Diff(context.Context, string, inspect.DiffFilter) (inspect.Difference, error) {
	return inspect.Difference{URL: pageURL, Document: "d1", From: f.version(1), To: f.version(2), Rows: []inspect.Row{
		{Kind: inspect.RowSkipped, Skipped: 3},
		{Kind: inspect.RowChanged,
			Old: []inspect.Line{{Segments: []inspect.Segment{{Text: "green tea "}, {Text: hostile + f.long, Event: pipeline.Removed}}}},
			New: []inspect.Line{{Segments: []inspect.Segment{{Text: "green tea "}, {Text: hostile + f.long, Event: pipeline.Added}}}}},
	}}, f.err
}

func (f *fake) Occurrences(_ context.Context, _, term string, _ inspect.OccurrenceFilter) (inspect.Occurrences, error) {
	o := inspect.Occurrences{}
	if term == "tea" {
		o.Occurrences = []inspect.Occurrence{{Text: "tea", Places: []inspect.Place{{Version: 2, Start: 6, End: 9}}}}
	}
	return o, f.err
}

func (f *fake) Explain(context.Context, string, inspect.ExplainFilter) (inspect.Explanation, error) {
	return inspect.Explanation{
		Page: inspect.Page{URL: pageURL}, Checks: []inspect.Check{{Time: someTime, Result: flow.OutcomeFailed, Reason: cmp.Or(f.reason, hostile)}},
		Changes:  []inspect.Change{{Version: 2, Matches: []inspect.Match{f.match()}}},
		Keywords: []inspect.Keyword{{Client: hostile, Keyword: hostile, Why: hostile}},
	}, f.err
}

func (f *fake) EachDeadLetter(context.Context, flow.DeadFilter) iter.Seq2[flow.DeadLetter, error] {
	return func(yield func(flow.DeadLetter, error) bool) {
		yield(flow.DeadLetter{Reason: hostile, Time: someTime, Addressed: &flow.Addressed{
			Receiver: pipeline.Receiver{Sink: hostile}, Notification: pipeline.Notification{URL: pageURL, Client: hostile, Diffs: []pipeline.Diff{{Keyword: hostile}}},
		}}, f.err)
	}
}

func (f *fake) Preview(ctx context.Context, s pipeline.Subscription, _ bool) (inspect.Preview, error) {
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
		return inspect.Preview{}, context.Cause(ctx)
	}
	return inspect.Preview{URL: s.URL, Title: hostile, Text: "green tea " + hostile, Places: []inspect.Place{{Start: 6, End: 9}}, ContentType: "text/html", Source: f.source}, f.err
}

func (f *fake) Changes(context.Context, string, inspect.DocumentFilter, int) (inspect.ChangeHistory, error) {
	return inspect.ChangeHistory{URL: pageURL, Changes: []flow.Change{{ID: "change-1", Version: 2, Time: someTime, Language: "en", Groups: []flow.Group{{
		Coarse: true, Differences: []flow.Difference{{Event: pipeline.Added, Text: "green tea " + hostile}},
	}}}}}, f.err
}

func (f *fake) Subscribe(_ context.Context, s pipeline.Subscription) error {
	f.subscribed = append(f.subscribed, s)
	said := fmt.Sprintf("subscribe %s %s %q %v %v %v %v", s.URL, s.Client, s.Keywords, s.Sinks, s.Interval, s.Select, s.MatchCase)
	if len(s.Tags) > 0 {
		said += fmt.Sprintf(" tags %q", s.Tags)
	}
	if s.Value != nil {
		said += fmt.Sprintf(" %s %+v", s.Value.Name(), s.Condition)
	}
	return f.note("%s", said)
}

func (f *fake) Change(_ context.Context, document string, s pipeline.Subscription) error {
	return f.note("change %s %s %q", document, s.Client, s.Keywords)
}

func (f *fake) TestSink(_ context.Context, sink string) error { return f.note("test %s", sink) }

func (f *fake) Recent(_ context.Context, rf inspect.RecentFilter) (inspect.RecentChanges, error) {
	f.filters = append(f.filters, inspect.ListFilter{Clients: rf.Clients, Client: rf.Client, Tag: rf.Tag, State: rf.Delivery, Contains: rf.Sink})
	return inspect.RecentChanges{Next: "older", Partial: f.partial, Changes: []inspect.RecentChange{{URL: pageURL, Title: hostile, Change: inspect.Change{
		ID: "change-1", Document: "d1", Version: 2, Time: someTime, Matches: []inspect.Match{f.match()},
	}}}}, f.err
}

func (f *fake) AccessClients(string) ([]string, bool) { return nil, false }

func (f *fake) note(format string, args ...any) error {
	f.done = append(f.done, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fake) Cancel(_ context.Context, url, client string) error {
	return f.note("cancel %s %s", url, client)
}
func (f *fake) Pause(_ context.Context, url, client string, until time.Time) error {
	if !until.IsZero() {
		return f.note("pause %s %s for %v", url, client, time.Until(until).Round(time.Minute))
	}
	return f.note("pause %s %s", url, client)
}
func (f *fake) Resume(_ context.Context, url, client string) error {
	return f.note("resume %s %s", url, client)
}
func (f *fake) CheckNow(_ context.Context, url string) error { return f.note("check %s", url) }

func (f *fake) Retry(_ context.Context, x flow.RetryFilter) ([]flow.Retried, error) {
	return []flow.Retried{{Sink: x.Sink, Waiting: 2}}, f.note("retry %s", x.Sink)
}

func (f *fake) Replay(_ context.Context, x flow.DeadFilter) (int, error) {
	return 1, f.note("replay %s", x.Sink)
}

func (f *fake) Observe(flow.Observer) (stop func()) { return func() {} }
func (f *fake) Ready() error                        { return nil }
func (f *fake) Gauges() []flow.Gauge                { return nil }

func (f *fake) Running() <-chan struct{} {
	running := make(chan struct{})
	close(running)
	return running
}

// browser is a user with cookies at the web page of a fake.
type browser struct {
	*http.Client
	base     string
	access   *manage.Access
	settings *Settings
	sinks    fakeSinks
}

// fakeSinks are receivers that were made on the page. The last one is hostile.
type fakeSinks struct {
	put []client.Sink
	err error
}

func (f *fakeSinks) Kinds() []client.SinkKind {
	return []client.SinkKind{{Kind: "hook", Doc: hostile, Fields: []client.SinkField{
		{Name: "url", Type: "secret", Required: true, Doc: hostile}, {Name: "tls.insecure", Type: "true or false", Default: "`false`"},
		{Name: "to", Type: "string or list of strings", Doc: "Who gets it\\_now."}, {Name: "headers", Type: "mapping of names to secrets"},
		{Name: "body", Type: "template"}, {Name: "routes", Type: "list of mappings"}, {Name: "priority", Type: "whole number", Default: "`5`"},
	}}}
}

func (f *fakeSinks) Sinks() ([]client.Sink, error) {
	return []client.Sink{{Sink: "mine", Kind: "hook", Options: map[string]string{"to": hostile}, Secrets: []string{"url"}, Paused: true}, {Sink: hostile, Kind: "hook"}}, nil
}

func (f *fakeSinks) Put(_ context.Context, s client.Sink) error {
	f.put = append(f.put, s)
	return f.err
}

func (f *fakeSinks) Remove(_ context.Context, sink string) error {
	f.put = append(f.put, client.Sink{Sink: "removed " + sink})
	return nil
}

// tokens are the tokens of the tests.
var tokens = []config.Token{
	{Name: "all", Hash: config.HashToken(aToken), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}},
	{Name: "reader", Hash: config.HashToken("reader"), Scopes: []config.Scope{config.ScopeRead}},
	{Name: "acme", Hash: config.HashToken("acme"), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}, Clients: []string{"acme"}},
	{Name: "writer", Hash: config.HashToken("writer"), Scopes: []config.Scope{config.ScopeWrite}},
}

// logIn serves the web page of f, and logs in with token unless it is empty.
func logIn(t *testing.T, f *fake, token string) *browser {
	t.Helper()
	b := &browser{Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, access: new(manage.Access), settings: new(Settings)}
	if err := b.access.Configure(config.API{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	api, err := manage.New(f, manage.Options{Access: b.access, Sinks: &b.sinks})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(New(Options{API: api, Settings: b.settings, Gauges: func() []flow.Gauge {
		return []flow.Gauge{{Name: "vokter_store_bytes", Help: hostile, Labels: map[string]string{"sink": hostile}, Value: 2048}}
	}}))
	t.Cleanup(s.Close)
	b.base = s.URL
	if b.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	if token != "" {
		if r, _ := b.post(t, "/login", url.Values{"token": {token}}); r.StatusCode != http.StatusSeeOther {
			t.Fatalf("login: got %s", r.Status)
		}
	}
	return b
}

// get asks for a page, as a browser whose user typed its address.
func (b *browser) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	return b.send(t, http.MethodGet, path, nil, map[string]string{"Sec-Fetch-Site": "none"})
}

// post sends a form, as a browser does that shows a page of the same site.
func (b *browser) post(t *testing.T, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	return b.send(t, http.MethodPost, path, form, map[string]string{"Origin": b.base})
}

func (b *browser) send(t *testing.T, method, path string, form url.Values, header map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if h := header["Host"]; h != "" {
		r.Host = h
	}
	resp, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// paths are requests to all routes that show a page.
func paths(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, r := range routes {
		path, ok := strings.CutPrefix(r.pattern, "GET ")
		if !ok || path == "/screenshot" {
			continue
		}
		query := "?url=" + url.QueryEscape(pageURL)
		if path == "/receiver" {
			query = "?sink=mine"
		}
		all = append(all, strings.TrimSuffix(path, "{$}")+query)
	}
	return all
}
