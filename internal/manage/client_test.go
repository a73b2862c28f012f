package manage

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestRoundTrip asks for everything over HTTP and compares it with what was served.
func TestRoundTrip(t *testing.T) {
	f := &fake{
		listing: inspect.Listing{
			Pages: []inspect.Page{
				{URL: "https://example.com/a", State: inspect.StateActive, Checks: 3, LastCheck: someTime, Documents: []inspect.Document{{ID: "D", State: inspect.StateActive, Version: 2}},
					Subscriptions: []inspect.Subscription{{Subscription: pipeline.Subscription{URL: "https://example.com/a", Client: "shop", Keywords: []string{"k"}, Sinks: []string{"s"}}, Document: "D", State: inspect.StateExpired, Since: someTime, From: 1}}},
				{URL: "https://example.com/b", State: inspect.StateFailing, Reason: "<500>", Failures: 4},
			},
			Receivers: []inspect.Receiver{{Sink: "s", State: inspect.StateActive, Pending: 1, Used: true, LastSuccess: someTime, LastFailure: someTime, LastError: "<503>"}},
		},
		why:     inspect.Explanation{Checks: []inspect.Check{{Check: 3, Time: someTime, Result: flow.OutcomeRead, Versions: map[string]uint64{"D": 2}}}},
		letters: []flow.DeadLetter{{Reason: "no", Time: someTime, Attempts: 4, Addressed: &flow.Addressed{Receiver: pipeline.Receiver{Sink: "s"}}}},
		n:       7,
		copied:  strings.Repeat("a tar stream ", 100_000),
	}
	c, _ := serve(t, f)
	ctx := t.Context()
	check := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
		}
	}
	p, err := c.Process(ctx)
	check("process", p, client.Process{Data: "/var/lib/vokter"}, err)
	l, err := c.List(ctx, inspect.ListFilter{URL: "https://example.com/?a=1&b=2", Client: "a b"})
	check("list", l, f.listing, err)
	l, err = c.List(ctx, inspect.ListFilter{Sinks: true})
	check("list of sinks", l, f.listing, err)
	e, err := c.Explain(ctx, "https://example.com/a", inspect.ExplainFilter{Client: "shop", Keyword: "out of stock"})
	check("explain", e, f.why, err)
	filter := flow.DeadFilter{Sink: "s", Client: "shop", URL: "https://example.com/a", Since: someTime}
	listed := filter
	listed.Messages = true
	d, err := c.DeadLetters(ctx, listed)
	check("dead letters", d, f.letters, err)
	n, err := c.Replay(ctx, filter)
	check("replay", n, 7, err)
	var b bytes.Buffer
	err = c.Backup(ctx, &b)
	check("backup", b.String() == f.copied, true, err)
	check("cancel", nil, nil, c.Cancel(ctx, "https://example.com/a", "shop"))
	check("resume", nil, nil, c.Resume(ctx, "https://example.com/a", ""))
	tried, err := c.Retry(ctx, flow.RetryFilter{Sink: "ops", URL: "https://example.com/a"})
	check("retry", tried, []flow.Retried{{Sink: "ops", Waiting: 3}}, err)
	list := []pipeline.Subscription{{URL: "https://example.com/a", Client: "shop", Keywords: []string{"k"}, Sinks: []string{"s"}}}
	applied, err := c.Apply(ctx, "crm", list)
	check("apply", applied, flow.ApplyReport{ApplyCounts: flow.ApplyCounts{Created: 1}, Subscriptions: []flow.Applied{{Entry: 1, URL: "https://example.com/a", Client: "shop", Outcome: flow.AppliedCreated}}}, err)
	applied, err = c.Apply(ctx, "crm", nil)
	check("apply nothing", applied.Subscriptions == nil, true, err)

	lf := inspect.ListFilter{URL: "https://example.com/?a=1&b=2", Client: "a b"}
	limited := func(f inspect.ListFilter) inspect.ListFilter {
		f.Limit = 1000
		return f
	}
	check("what was asked", f.asked, []any{
		limited(lf), inspect.ListFilter{URL: lf.URL, Client: lf.Client, Sinks: true}, limited(inspect.ListFilter{}), inspect.ListFilter{Sinks: true},
		"https://example.com/a", inspect.ExplainFilter{Client: "shop", Keyword: "out of stock"}, listed, filter,
		"cancel", "https://example.com/a", "shop", "resume", "https://example.com/a", "",
		flow.RetryFilter{Sink: "ops", URL: "https://example.com/a"},
		vokter.SubscriptionList{Origin: "crm", Subscriptions: list, Refused: map[int]error{}}, vokter.SubscriptionList{Origin: "crm", Refused: map[int]error{}},
	}, nil)
}

// TestDeliveries lists the deliveries of all pages and of one.
func TestDeliveries(t *testing.T) {
	f := &fake{}
	c, _ := serve(t, f)
	filter := inspect.RecentFilter{Client: "shop", Sink: "ops", Delivery: inspect.DeliveryDead, Limit: 2}
	d, err := c.Deliveries(t.Context(), "", filter)
	want := client.Delivery{URL: "https://example.com/", Change: "c1", Version: 2, Match: inspect.Match{Notification: "n1", Sink: "ops", Delivery: inspect.DeliveryDead}}
	if err != nil || len(d.Deliveries) != 1 || !reflect.DeepEqual(d.Deliveries[0], want) || d.Next == "" {
		t.Errorf("got %+v, %v, want %+v", d, err, want)
	}
	next := filter
	next.After = d.Next
	if _, err := c.Deliveries(t.Context(), "", next); err != nil {
		t.Error(err)
	}
	next.After = "more"
	if d, err := c.Deliveries(t.Context(), "https://example.com/", filter); err != nil || d.Next != "" {
		t.Errorf("of one page: got %+v, %v", d, err)
	}
	if want := []any{filter, next, "https://example.com/", inspect.ExplainFilter{Client: "shop"}}; !reflect.DeepEqual(f.asked, want) {
		t.Errorf("the pipeline was asked %+v, want %+v", f.asked, want)
	}
}

// TestErrorsKeepTheirMeaning checks that a client sees what a Router would have returned.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	for _, want := range []error{
		&flow.Refusal{Code: flow.CodeNotFound, Message: "there is no such page"},
		&flow.Refusal{Code: flow.CodeConflict, Message: "it is watched already"},
		flow.ErrBusy,
		fmt.Errorf("%w (the disk has too little room)", flow.ErrBusy),
		fmt.Errorf("https://example.com/: %w", inspect.ErrElsewhere),
		errBroken,
	} {
		c, _ := serve(t, &fake{err: want})
		_, listed := c.List(t.Context(), inspect.ListFilter{})
		for what, err := range map[string]error{
			"list": listed, "cancel": c.Cancel(t.Context(), "https://example.com/", "c"), "backup": c.Backup(t.Context(), new(bytes.Buffer)),
		} {
			if err == nil || err.Error() != want.Error() {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
			for _, kind := range []error{flow.ErrBusy, inspect.ErrElsewhere} {
				if errors.Is(err, kind) != errors.Is(want, kind) {
					t.Errorf("%s: %v is %q, unlike %v", what, err, kind, want)
				}
			}
			var refused, refusal *flow.Refusal
			if errors.As(want, &refusal) && (!errors.As(err, &refused) || *refused != *refusal) {
				t.Errorf("%s: got %T %v, want %v", what, err, err, want)
			}
		}
	}
}

// TestCutBackup checks that a copy that broke off is not taken for a whole one.
func TestCutBackup(t *testing.T) {
	c, _ := serve(t, &fake{copied: strings.Repeat("half of it ", 100_000), err: errBroken})
	if err := c.Backup(t.Context(), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("got %v", err)
	}
}

func TestBackupIntoFullDisk(t *testing.T) {
	c, _ := serve(t, &fake{copied: "a tar stream"})
	if err := c.Backup(t.Context(), full{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errBroken }

// TestOtherServers checks what is said of addresses where something else answers.
func TestOtherServers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a page":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<p>hello")) },
		"not found":  http.NotFound,
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		s := httptest.NewServer(h)
		c := client.New(strings.TrimPrefix(s.URL, "http://"), aToken)
		if _, err := c.Process(t.Context()); err == nil || !strings.Contains(err.Error(), "has no such API") {
			t.Errorf("%s: got %v", name, err)
		}
		s.Close()
		if _, err := c.Process(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s, closed: got %v", name, err)
		}
	}
}

// TestStarting: before the pipeline works a process says which one it is, and otherwise why
// it does not.
func TestStarting(t *testing.T) {
	f := &fake{starting: true, down: errBroken}
	c, _ := serve(t, f)
	if p, err := c.Process(t.Context()); err != nil || p.Data == "" || p.Lanes != nil {
		t.Errorf("process: got %+v, %v", p, err)
	}
	_, list := c.List(t.Context(), inspect.ListFilter{})
	_, explain := c.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{})
	_, replay := c.Replay(t.Context(), flow.DeadFilter{})
	for what, err := range map[string]error{
		"list": list, "explain": explain, "replay": replay, "cancel": c.Cancel(t.Context(), "https://example.com/", "c"),
	} {
		if err == nil || err.Error() != errBroken.Error() {
			t.Errorf("%s: got %v, want %v", what, err, errBroken)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the pipeline was asked %v", f.asked)
	}
	f.starting = false
	if _, err := c.List(t.Context(), inspect.ListFilter{}); err != nil {
		t.Errorf("list of one at work: %v", err)
	}
}

func TestLanes(t *testing.T) {
	c, _ := serve(t, &fake{gauges: []flow.Gauge{
		{Name: "vokter_ready", Value: 1}, {Name: flow.GaugeLanes, Value: 32}, {Name: flow.GaugeLanesOwned, Value: 11},
		{Name: flow.GaugeLanesRestoring, Value: 2},
	}})
	p, err := c.Process(t.Context())
	if want := (client.Process{Data: "/var/lib/vokter", Lanes: &client.Lanes{Owned: 11, Restoring: 2, All: 32}}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
}

func TestElsewhere(t *testing.T) {
	want := fmt.Errorf("https://example.com/: %w", inspect.ErrElsewhere)
	c, _ := serve(t, &fake{err: want})
	_, err := c.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{})
	if !errors.Is(err, inspect.ErrElsewhere) || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

// TestPreviewWithoutAccess: a page that asks for credentials is refused with what to do.
func TestPreviewWithoutAccess(t *testing.T) {
	c, _ := serve(t, &fake{err: &pipeline.FetchError{Class: pipeline.FailStatus, Status: 401, Reason: "HTTP status 401 Unauthorized"}})
	_, err := c.Preview(t.Context(), pipeline.Subscription{URL: "https://example.com/"}, false)
	if err == nil || err.Error() != "HTTP status 401 Unauthorized; if the page needs credentials, give them in access of the configuration" {
		t.Errorf("got %v", err)
	}
}
