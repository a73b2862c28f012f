package vokter

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestDigestOverRestarts collects what two changes say, over the lives of several processes.
func TestDigestOverRestarts(t *testing.T) {
	s, box := newSite(t, "<html lang=en><title>Shop</title><p>Zeus is here</p></html>"), newMailbox()
	cfg := watching(s, box, t.TempDir(), "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(30 * 24 * time.Hour), Max: 2}
	runs(t, cfg)
	s.set("<html lang=en><title>Shop</title><p>Zeus is in stock</p></html>")
	runs(t, cfg)
	if sent := box.take(); len(sent) != 0 {
		t.Fatalf("told at once: %+v", sent)
	}

	until := time.Now().Add(30 * 24 * time.Hour)
	e := explained(t, cfg, inspect.ExplainFilter{})
	if len(e.Changes) != 1 || len(e.Changes[0].Matches) != 1 {
		t.Fatalf("changes %+v", e.Changes)
	}
	m := e.Changes[0].Matches[0]
	if m.Delivery != inspect.DeliveryDigest || m.Digest != "" || m.Time.After(until) || m.Time.Before(until.Add(-time.Hour)) {
		t.Errorf("of the first change it says %+v", m)
	}
	l := listed(t, cfg, inspect.ListFilter{})
	if len(l.Receivers) != 1 || l.Receivers[0].Collected != 1 || l.Receivers[0].Pending != 0 || !l.Receivers[0].NextDigest.Equal(m.Time) {
		t.Errorf("receivers %+v", l.Receivers)
	}

	s.set("<html lang=en><title>Shop now</title><p>Zeus is out of stock</p><p>Hera is in stock</p></html>")
	runs(t, cfg)
	sent := box.take()
	if len(sent) != 1 || sent[0].Type != pipeline.NotificationTypeDigest || len(sent[0].Items) != 2 || sent[0].Title != "Shop now" {
		t.Fatalf("told %+v", sent)
	}
	if i := sent[0].Items; i[0].ID != m.Notification || i[0].Version != 2 || i[1].Version != 3 || i[0].Diffs+i[1].Diffs != len(sent[0].Diffs) {
		t.Errorf("told %+v", sent[0])
	}
	if !strings.Contains(sent[0].Diffs[0].Snippet, "Zeus is in stock") {
		t.Errorf("first it says %+v", sent[0].Diffs[0])
	}
	for _, c := range explained(t, cfg, inspect.ExplainFilter{}).Changes {
		if m := c.Matches[0]; m.Delivery != inspect.DeliveryDelivered || m.Digest != sent[0].ID || m.Attempts != 1 {
			t.Errorf("of version %d it says %+v", c.Version, m)
		}
	}
}

// TestDigestInMemoryIsToldInTheEnd has nowhere to keep what was collected.
func TestDigestInMemoryIsToldInTheEnd(t *testing.T) {
	s, box := newSite(t, "<p>Zeus is here</p>"), newMailbox()
	cfg := watching(s, box, "", "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}
	cfg.Checks = 3
	cfg.Fetchers = []pipeline.Fetcher{&changing{}}
	runs(t, cfg)
	sent := box.take()
	if len(sent) != 1 || len(sent[0].Items) != 2 {
		t.Errorf("told %+v", sent)
	}
}

// TestDigestInMemoryWaitsForWhatIsUnderWay holds a change until the Router drains: the digest
// ends with it, not before.
func TestDigestInMemoryWaitsForWhatIsUnderWay(t *testing.T) {
	s, box := newSite(t, "<p>Zeus is here</p>"), newMailbox()
	cfg := watching(s, box, "", "stock")
	cfg.Subscriptions[0].Digest = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}
	cfg.Checks = 3
	cfg.Fetchers = []pipeline.Fetcher{&changing{}}
	var r *Router
	var handled atomic.Int64
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupDiff: {func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if handled.Add(1) == 3 {
				waitFor(t, func() bool { return errors.Is(r.Ready(), errDraining) })
				select {
				case <-box.came:
					t.Error("the digest ended while a change was under way")
				case <-time.After(100 * time.Millisecond):
				}
			}
			return next.Process(ctx, tx, m)
		})
	}}}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := box.take(); len(sent) != 1 || len(sent[0].Items) != 2 {
		t.Errorf("told %+v", sent)
	}
}

// changing is a site on which something is in stock at every other check.
type changing struct{ checks atomic.Int64 }

func (*changing) Schemes() []string { return []string{"http"} }

func (c *changing) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	body := "<p>In stock</p>"
	if c.checks.Add(1)%2 == 0 {
		body = "<p>Sold out</p>"
	}
	return pipeline.Response{
		URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}
