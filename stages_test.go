package vokter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// channelSink is a sink that passes notifications on.
type channelSink chan pipeline.Notification

func (h channelSink) Deliver(_ context.Context, n pipeline.Notification) error {
	h <- n
	return nil
}

// TestNotificationsLink: a notification has the address of its difference on the web page.
func TestNotificationsLink(t *testing.T) {
	var asked atomic.Int32
	fast := 10 * time.Millisecond
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<p>lantern number %d</p>", asked.Add(1))
	}))
	defer pages.Close()
	out := make(channelSink, 16)
	r, err := New(Config{
		PublicURL: "https://vokter.example.com", Sinks: map[string]pipeline.Sink{"out": out}, Fetch: FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: pages.URL, Sinks: []string{"out"}}}, Every: &fast,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	page, err := pageurl.Canonical(pages.URL)
	if err != nil {
		t.Fatal(err)
	}
	n := <-out
	u, err := url.Parse(n.Link)
	if err != nil || u.Host != "vokter.example.com" || u.Path != "/diff" || u.Query().Get("to") != fmt.Sprint(n.Version) || u.Query().Get("document") == "" {
		t.Errorf("got %q, %v", n.Link, err)
	}
	if at, err := pageurl.Canonical(u.Query().Get("url")); err != nil || at != page {
		t.Errorf("got %q, %v", n.Link, err)
	}
	for _, c := range []struct {
		n    pipeline.Notification
		want string
	}{
		{pipeline.Notification{URL: "https://x.example/?a=b&c", Version: 3}, "/diff?document=d&to=3&url=https%3A%2F%2Fx.example%2F%3Fa%3Db%26c"},
		{pipeline.Notification{URL: "https://x.example/", Status: pipeline.StatusTimeout}, "/page?document=d&url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{URL: "https://x.example/", Version: 3, Type: pipeline.NotificationTypeDigest}, "/page?document=d&url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{Type: pipeline.NotificationTypeDigest, Items: []pipeline.Item{{URL: "https://x.example/"}}}, "/changes"},
		{pipeline.Notification{Health: &pipeline.Health{URL: "https://x.example/"}}, "/page?url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{Health: &pipeline.Health{}}, ""}, {pipeline.Notification{URL: "https://x.example/", Type: pipeline.NotificationTypeTest}, ""},
	} {
		want := c.want
		if want != "" {
			want = "https://vokter.example.com" + want
		}
		if got := r.notificationLink("d", c.n); got != want {
			t.Errorf("%+v: got %q, want %q", c.n, got, want)
		}
	}
}

// TestChangeSinks: a page gets its own sinks and those of all pages, each once, by the present
// configuration.
func TestChangeSinks(t *testing.T) {
	var r Router
	r.liveConfig.Store(&Config{Changes: []string{"b", "a"}, Documents: []Document{
		{URL: "https://example.com/none", Keep: true},
		{URL: "https://EXAMPLE.com:443/own", Keep: true, Changes: []string{"c", "b"}},
		{URL: "https://example.com/own", Keep: true, Changes: []string{"d"}},
	}})
	want := func(page string, sinks ...string) {
		t.Helper()
		if got := r.changeSinks(page); !slices.Equal(got, sinks) {
			t.Errorf("%s: got %q, want %q", page, got, sinks)
		}
	}
	want("https://example.com/own", "a", "b", "c")
	want("https://example.com/none", "b", "a")
	want("https://example.com/other", "b", "a")
	r.liveConfig.Store(&Config{Documents: []Document{{URL: "https://example.com/none", Keep: true, Changes: []string{"e"}}}})
	want("https://example.com/own")
	want("https://example.com/none", "e")
}

// TestChangeSinksOfManyDocuments: what a change costs does not grow with the documents of the
// configuration.
func TestChangeSinksOfManyDocuments(t *testing.T) {
	c := new(Config)
	for i := range 1000 {
		c.Documents = append(c.Documents, Document{URL: fmt.Sprintf("https://example.com/%d", i), Keep: true, Changes: []string{"s"}})
	}
	var r Router
	r.liveConfig.Store(c)
	if n := testing.AllocsPerRun(10, func() { r.changeSinks("https://example.com/999") }); n > 0 {
		t.Errorf("looking up the sinks of a page makes %v allocations", n)
	}
}
