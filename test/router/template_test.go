package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/mattermost"
)

// A template that fails when it is used costs no alert: that goes out in the layout of
// the sink, and a health event says why. What looks like a template in a page stays text.
func TestFailingTemplateCostsNoAlert(t *testing.T) {
	for _, tt := range []struct {
		template, want, degraded string
	}{
		{`Look: {{.headline}} {{range .diffs}}{{.snippet}}{{end}}`, "Look: added: out of stock", ""},
		{`{{.headline}} {{(index .diffs 7).text}}`, "**added: out of stock**", "the template failed: line 1: "},
		{`{{.nothing}}`, "**added: out of stock**", `there is no field "nothing"`},
		{`{{if .reason}}x{{end}}`, "**added: out of stock**", "it says nothing"},
	} {
		posts, events := make(chan string, 9), make(chan pipeline.Health, 9)
		team := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var post struct{ Text string }
			if err := json.NewDecoder(r.Body).Decode(&post); err != nil {
				t.Error(err)
			}
			posts <- post.Text
			_, _ = w.Write([]byte("ok"))
		}))
		defer team.Close()
		sink, err := mattermost.New(mattermost.Config{
			WebhookURL: registry.NewSecret(team.URL + "/hooks/abcdefgh"), Template: templates.New(tt.template),
			Connection: registry.Connection{Client: http.DefaultClient},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse("c.yaml", []byte(`
fetch: {per_host: {rate: 1000/s}}
allow: {fetch: [127.0.0.0/8]}
sinks: {}
`), config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Router.Fetchers = []pipeline.Fetcher{&pagesFetcher{bodies: []string{"<p>Zeus. In stock.</p>", "<p>Zeus {{range 9}}{{.nope}}. Out of stock.</p>"}}}
		c.Router.Sinks = map[string]pipeline.Sink{"team": sink}
		c.Router.Subscriptions = []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"out of stock"}, Sinks: []string{"team"}}}
		c.Router.Sinks["ops"] = pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			events <- *n.Health
			return nil
		})
		c.Router.Health, c.Router.Checks, c.Router.Every = []string{"ops"}, 2, &zeroInterval
		r, err := vokter.New(c.Router)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		select {
		case text := <-posts:
			if !strings.HasPrefix(text, tt.want) || !strings.Contains(text, "range 9") {
				t.Errorf("%s: got %q, want %q and the text of the page", tt.template, text, tt.want)
			}
		case <-ctx.Done():
			t.Fatalf("%s: nothing was delivered", tt.template)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", tt.template, err)
		}
		close(events)
		e := <-events
		if tt.degraded != "" && (e.Event != pipeline.HealthReceiverDegraded || !strings.Contains(e.Reason, tt.degraded)) || tt.degraded == "" && e.Event != "" {
			t.Errorf("%s: got the event %q: %q, want %q", tt.template, e.Event, e.Reason, tt.degraded)
		}
	}
}

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
	_, stop := startRouter(t, vokter.Config{
		PublicURL: "https://vokter.example.com", Sinks: map[string]pipeline.Sink{"out": out}, Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Rate: 1000},
		Subscriptions: []pipeline.Subscription{{URL: pages.URL, Sinks: []string{"out"}}}, Every: &fast,
	})
	defer stop()
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
