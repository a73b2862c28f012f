package router_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
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
	r, err := vokter.New(vokter.Config{
		PublicURL: "https://vokter.example.com", Sinks: map[string]pipeline.Sink{"out": out}, Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Rate: 1000},
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
}
