package manage

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// fake is a Service that notes what it was asked and answers what it was told to.
type fake struct {
	asked   []any
	listing inspect.Listing
	why     inspect.Explanation
	letters []flow.DeadLetter
	n       int
	copied  string
	// copying, unless it is nil, is called by Backup before it writes.
	copying func()
	err     error
	down    error
	// starting says that the pipeline has not begun to work.
	starting bool
	gauges   []flow.Gauge
	// observer receives the observer of each request for events.
	observer chan flow.Observer
}

func (f *fake) List(_ context.Context, lf inspect.ListFilter) (inspect.Listing, error) {
	f.asked = append(f.asked, lf)
	return f.listing, f.err
}

func (f *fake) Pages(_ context.Context, lf inspect.ListFilter) ([]inspect.Page, string, error) {
	f.asked = append(f.asked, lf)
	return append([]inspect.Page{}, f.listing.Pages...), "", f.err
}

func (f *fake) Deliveries(_ context.Context, url string, ef inspect.ExplainFilter) ([]inspect.Change, error) {
	f.asked = append(f.asked, url, ef)
	return f.why.Changes, f.err
}

func (f *fake) Preview(_ context.Context, s pipeline.Subscription, source bool) (inspect.Preview, error) {
	f.asked = append(f.asked, "preview", s, source)
	return inspect.Preview{URL: s.URL, Text: "words"}, f.err
}

func (f *fake) AccessClients(string) ([]string, bool) { return nil, false }

func (f *fake) Change(_ context.Context, document string, s pipeline.Subscription) error {
	f.asked = append(f.asked, "change", document, s)
	return f.err
}

func (f *fake) TestSink(_ context.Context, sink string) error {
	f.asked = append(f.asked, "test", sink)
	return f.err
}

func (f *fake) Recent(_ context.Context, rf inspect.RecentFilter) (inspect.RecentChanges, error) {
	f.asked = append(f.asked, rf)
	return inspect.RecentChanges{Next: "more", Partial: rf.Partial, Changes: []inspect.RecentChange{{
		URL: "https://example.com/", Change: inspect.Change{ID: "c1", Version: 2, Matches: []inspect.Match{{Notification: "n1", Sink: "ops", Delivery: inspect.DeliveryDead}}},
	}}}, f.err
}

func (f *fake) Observe(o flow.Observer) (stop func()) {
	f.observer <- o
	return func() {}
}

func (f *fake) Receivers(_ context.Context, lf inspect.ListFilter) ([]inspect.Receiver, error) {
	f.asked = append(f.asked, lf)
	return f.listing.Receivers, f.err
}

func (f *fake) Explain(_ context.Context, url string, ef inspect.ExplainFilter) (inspect.Explanation, error) {
	f.asked = append(f.asked, url, ef)
	return f.why, f.err
}

func (f *fake) Cancel(_ context.Context, url, client string) error {
	f.asked = append(f.asked, "cancel", url, client)
	return f.err
}

func (f *fake) Subscribe(_ context.Context, s pipeline.Subscription) error {
	f.asked = append(f.asked, "subscribe", s)
	return f.err
}

func (f *fake) ApplyList(_ context.Context, l vokter.SubscriptionList) (flow.ApplyReport, error) {
	f.asked = append(f.asked, l)
	var r flow.ApplyReport
	for i, s := range l.Subscriptions {
		a := flow.Applied{Entry: i + 1, URL: s.URL, Client: s.Client, Outcome: flow.AppliedCreated}
		if err := l.Refused[i]; err != nil {
			a.Outcome, a.Reason = flow.AppliedRefused, err.Error()
		}
		r.Add(a)
	}
	return r, f.err
}

func (f *fake) Pause(_ context.Context, url, client string, until time.Time) error {
	f.asked = append(f.asked, "pause", url, client, until)
	return f.err
}

func (f *fake) CheckNow(_ context.Context, url string) error {
	f.asked = append(f.asked, "check", url)
	return f.err
}

func (f *fake) Retry(_ context.Context, x flow.RetryFilter) ([]flow.Retried, error) {
	f.asked = append(f.asked, x)
	return []flow.Retried{{Sink: "ops", Waiting: 3}}, f.err
}

func (f *fake) Resume(_ context.Context, url, client string) error {
	f.asked = append(f.asked, "resume", url, client)
	return f.err
}

func (f *fake) DeadLetters(context.Context, flow.DeadFilter) ([]flow.DeadLetter, error) {
	panic("the API lists them in parts")
}

func (f *fake) EachDeadLetter(_ context.Context, df flow.DeadFilter) iter.Seq2[flow.DeadLetter, error] {
	f.asked = append(f.asked, df)
	return func(yield func(flow.DeadLetter, error) bool) {
		for _, d := range f.letters {
			if !yield(d, nil) {
				return
			}
		}
		if f.err != nil {
			yield(flow.DeadLetter{}, f.err)
		}
	}
}

func (f *fake) Replay(_ context.Context, df flow.DeadFilter) (int, error) {
	f.asked = append(f.asked, df)
	return f.n, f.err
}

func (f *fake) Backup(_ context.Context, w io.Writer) error {
	if f.copying != nil {
		f.copying()
	}
	if f.copied != "" {
		if _, err := io.WriteString(w, f.copied); err != nil {
			return err
		}
	}
	return f.err
}

func (f *fake) Ready() error { return f.down }

func (f *fake) Running() <-chan struct{} {
	running := make(chan struct{})
	if !f.starting {
		close(running)
	}
	return running
}

func (f *fake) Gauges() []flow.Gauge { return f.gauges }

// newAPIOf returns the API of f with the token aToken.
func newAPIOf(t *testing.T, f Service, more config.API) *API {
	t.Helper()
	access := new(Access)
	if err := access.Configure(more); err != nil {
		t.Fatal(err)
	}
	a, err := New(f, Options{Process: client.Process{Data: "/var/lib/vokter"}, Token: aToken, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve serves f and returns a client of it, and its URL.
func serve(t *testing.T, f *fake) (*client.Client, string) {
	t.Helper()
	s := httptest.NewServer(newAPIOf(t, f, config.API{}))
	t.Cleanup(s.Close)
	c := client.New(s.URL, aToken)
	t.Cleanup(c.Close)
	return c, s.URL
}

const aToken = "OPENSESAME"

var (
	someTime  = time.Date(2026, 1, 31, 15, 4, 5, 6, time.UTC)
	errBroken = errors.New("something broke")
)

func (f *fake) Versions(_ context.Context, url string, df inspect.DocumentFilter) (inspect.History, error) {
	f.asked = append(f.asked, url, df)
	return inspect.History{URL: url, Versions: []inspect.Version{{N: 7}}}, f.err
}

func (f *fake) Text(_ context.Context, url string, n uint64, df inspect.DocumentFilter) (inspect.Text, error) {
	f.asked = append(f.asked, url, n, df)
	return inspect.Text{URL: url, Text: "words", Version: inspect.Version{N: n}}, f.err
}

func (f *fake) Screenshot(_ context.Context, url string, n uint64, df inspect.DocumentFilter) (inspect.Screenshot, error) {
	f.asked = append(f.asked, url, n, df)
	return inspect.Screenshot{URL: url, Version: n, ContentType: "image/webp", Image: []byte("RIFF")}, f.err
}

func (f *fake) Diff(_ context.Context, url string, df inspect.DiffFilter) (inspect.Difference, error) {
	f.asked = append(f.asked, url, df)
	return inspect.Difference{URL: url, Rows: []inspect.Row{{Kind: inspect.RowSkipped, Skipped: 2}}}, f.err
}

func (f *fake) Occurrences(_ context.Context, url, term string, of inspect.OccurrenceFilter) (inspect.Occurrences, error) {
	f.asked = append(f.asked, url, term, of)
	return inspect.Occurrences{URL: url, Term: term}, f.err
}

func (f *fake) Changes(_ context.Context, url string, df inspect.DocumentFilter, last int) (inspect.ChangeHistory, error) {
	f.asked = append(f.asked, url, df, last)
	return inspect.ChangeHistory{URL: url, Changes: []flow.Change{{Version: 2, Groups: []flow.Group{}}}}, f.err
}
