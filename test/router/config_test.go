package router_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/pageurl"
)

func TestConfigNamesAllThatIsWrong(t *testing.T) {
	_, err := vokter.New(vokter.Config{Subscriptions: []pipeline.Subscription{
		{URL: "example.com", Keywords: []string{"a"}, Sinks: []string{"x"}},
		{URL: "http://example.com/", Keywords: []string{}, Sinks: []string{"x"}},
	}, Checks: -1})
	for _, want := range []string{"absolute URL", "at least one keyword", `no sink is named "x"`, "checks must not be negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

func TestConfigThatContradictsItself(t *testing.T) {
	s, err := vokter.OpenStore("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	transport, err := local.Open(local.Config{Topics: vokter.Topology()})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	for want, cfg := range map[string]vokter.Config{
		"a store and a transport are given": {Store: s, Transport: transport},
		"a store and a directory are given": {Store: s, Dir: t.TempDir()},
		"there is nothing to do":            {},
		"mode 3 does not exist":             {Mode: vokter.ModeCommands + 1},
	} {
		if _, err := vokter.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

// singleChannelSink is a sink that belongs to one channel.
type singleChannelSink struct{ pipeline.SinkFunc }

func (singleChannelSink) TakesChannel() error { return errors.New("it belongs to one channel") }

// TestChannelOfASubscription: a channel is refused where a sink would post elsewhere.
func TestChannelOfASubscription(t *testing.T) {
	s := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"a"}, Sinks: []string{"chat"}, Channel: "#legal"}
	cfg := vokter.Config{Sinks: map[string]pipeline.Sink{"chat": singleChannelSink{}}, Subscriptions: []pipeline.Subscription{s}}
	want := `channel: the sink "chat" cannot deliver to #legal: it belongs to one channel`
	if _, err := vokter.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New: %v, want %q in it", err, want)
	}
	cfg.Subscriptions = nil
	r, stop := startRouter(t, cfg)
	defer stop()
	if err := r.Subscribe(t.Context(), s); err == nil || err.Error() != want {
		t.Errorf("Subscribe: %v, want %q", err, want)
	}
}

// invalidSubscriptions are subscriptions that lint refuses, each with a part of the reason.
func invalidSubscriptions() map[string]pipeline.Subscription {
	of := func(change func(*pipeline.Subscription)) pipeline.Subscription {
		s := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"a"}, Sinks: []string{"box"}}
		change(&s)
		return s
	}
	return map[string]pipeline.Subscription{
		"has the scheme ftp":     of(func(s *pipeline.Subscription) { s.URL = "ftp://example.com/" }),
		"user name or password":  of(func(s *pipeline.Subscription) { s.URL = "https://user:hunter2@example.com/" }),
		"at most 8192":           of(func(s *pipeline.Subscription) { s.URL += strings.Repeat("a", pageurl.MaxLength) }),
		"client: a name of 1001": of(func(s *pipeline.Subscription) { s.Client = strings.Repeat("ä", 1001) }),
		"has no word in it":      of(func(s *pipeline.Subscription) { s.Keywords = []string{"!"} }),
		"keywords[1]: a keyword of 1001 characters is too long; at most 1000": of(func(s *pipeline.Subscription) { s.Keywords = []string{"a", strings.Repeat("ä", 1001)} }),
		"10001 keywords are too many; at most 10000":                          of(func(s *pipeline.Subscription) { s.Keywords = make([]string, 10_001) }),
		"klingonish":                     of(func(s *pipeline.Subscription) { s.Language = "klingonish" }),
		":has within :has":               of(func(s *pipeline.Subscription) { s.Select = []pipeline.Selector{{CSS: "html:has(div:has(div:has(b)))"}} }),
		"is not a CSS selector":          of(func(s *pipeline.Subscription) { s.Remove = []pipeline.Selector{{CSS: "p["}} }),
		"instructions, and at most 1000": of(func(s *pipeline.Subscription) { s.Ignore = []string{"(a{1,30}){1,30}z"} }),
		"101 regular expressions":        of(func(s *pipeline.Subscription) { s.Ignore = make([]string, 101) }),
	}
}

// TestMistakenSubscriptions: New refuses what lint refuses, and shows no password.
func TestMistakenSubscriptions(t *testing.T) {
	for want, s := range invalidSubscriptions() {
		_, err := vokter.New(vokter.Config{Subscriptions: []pipeline.Subscription{s}, Sinks: map[string]pipeline.Sink{"box": newMailbox()}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %.300v, want %q", err, want)
		}
	}
}

func TestSchemes(t *testing.T) {
	subscribed := func(s pipeline.Subscription, fetchers ...pipeline.Fetcher) error {
		s.Keywords, s.Sinks = []string{"a"}, []string{"box"}
		return vokter.Config{Subscriptions: []pipeline.Subscription{s}, Fetchers: fetchers, Sinks: map[string]pipeline.Sink{"box": newMailbox()}}.Validate()
	}
	if err := subscribed(pipeline.Subscription{URL: "ftp://example.com/", Interval: pipeline.Never}); err != nil {
		t.Errorf("a page that is pushed: %v", err)
	}
	if err := subscribed(pipeline.Subscription{URL: "gopher://example.com/"}, gopherFetcher{}); err != nil {
		t.Errorf("with a fetcher: %v", err)
	}
	for _, d := range []vokter.Document{{URL: "ftp://example.com/", Keep: true}, {URL: "https://u:hunter2@example.com/", Keep: true, Interval: pipeline.Never}} {
		if err := (vokter.Config{Documents: []vokter.Document{d}}).Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("document %+v: got %v", d, err)
		}
	}
	if err := (vokter.Config{Documents: []vokter.Document{{URL: "ftp://example.com/", Keep: true, Interval: pipeline.Never}}}).Validate(); err != nil {
		t.Errorf("a document that is pushed: %v", err)
	}
}

type gopherFetcher struct{}

func (gopherFetcher) Schemes() []string { return []string{"gopher"} }

func (gopherFetcher) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailNetwork, Reason: "nothing is there"}
}

// TestMemoryForOnePage: with memory for one page at a time all pages go on, each after another.
// What they add is told though so many lines changed that their comparison is coarse.
func TestMemoryForOnePage(t *testing.T) {
	t.Parallel()
	const pages, lines = 3, 51_000
	var checks atomic.Int64
	urls := hosts(t, pages, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		n := (checks.Add(1) - 1) / pages
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "%c%d\n", 'a'+rune(n), i)
		}
		fmt.Fprintf(&b, "needle%d\n", n)
		w.Write([]byte(b.String()))
	})
	m := newMailbox()
	cfg := vokter.Config{
		Memory: 1, Checks: 2, Sinks: map[string]pipeline.Sink{"box": m},
		Fetch: vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	}
	for _, u := range urls {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: u, Keywords: []string{"needle0", "needle1"}, Sinks: []string{"box"}})
	}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := m.all
	if len(got) != pages {
		t.Fatalf("%d notifications, want %d", len(got), pages)
	}
	for _, n := range got {
		if len(n.Diffs) != 2 || n.Diffs[0].Text != "needle0" || n.Diffs[0].Event != pipeline.Removed || n.Diffs[1].Text != "needle1" || n.Diffs[1].Event != pipeline.Added {
			t.Errorf("%s: got %+v", n.URL, n.Diffs)
		}
	}
}
