package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// TestASourceIsRunAgain lets one fail, which is told once for each outage.
func TestASourceIsRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		var runs []time.Time
		var ended time.Time
		last := make(chan struct{})
		source := pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
			runs = append(runs, time.Now())
			switch len(runs) {
			case 3: // it works for a moment: that ends the outage
				if err := emit(ctx, pipeline.Pushed{URL: pushedURL, Text: "x"}); err != nil {
					return err
				}
			case 5:
				panic("no")
			case 7: // it works for long, though nothing comes
				time.Sleep(5 * time.Minute)
				ended = time.Now()
			case 8:
				close(last)
				return nil // it has an end
			}
			return errors.New("away")
		})
		cfg := pushedConfig(newMailbox(), nil)
		cfg.Sources, cfg.Logger = map[string]pipeline.Source{"crawler": source}, slog.New(slog.NewTextHandler(&log, nil))
		_, stop := startRouter(t, cfg)
		<-last
		synctest.Wait()
		stop()
		var pauses []time.Duration
		for i, at := range runs[1:] {
			before := runs[i]
			if i == 6 {
				before = ended
			}
			pauses = append(pauses, at.Sub(before))
		}
		s := time.Second
		if want := []time.Duration{s, 2 * s, s, 2 * s, 5 * s, 15 * s, s}; !slices.Equal(pauses, want) {
			t.Errorf("paused for %v, want %v", pauses, want)
		}
		if got := strings.Count(log.String(), "a source failed"); got != 3 {
			t.Errorf("told %d times, want once for each of three outages:\n%s", got, log.String())
		}
	})
}

// closedIngest is a transport that takes no pages.
type closedIngest struct{ flow.Transport }

func (c closedIngest) Publish(ctx context.Context, ms ...flow.Message) error {
	if ms[0].Topic == flow.TopicIngest {
		return errors.New("no room")
	}
	return c.Transport.Publish(ctx, ms...)
}

func TestWhatASourceHandsOver(t *testing.T) {
	cfg, answers := pushedConfig(newMailbox(), nil), make(chan error, 1)
	handOver := func(p pipeline.Pushed) (*vokter.Router, error) {
		cfg.Sources = map[string]pipeline.Source{"crawler": pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
			answers <- emit(ctx, p)
			return nil
		})}
		r, stop := startRouter(t, cfg)
		t.Cleanup(stop)
		return r, <-answers
	}
	dead := func(r *vokter.Router) {
		t.Helper()
		waitFor(t, "a dead letter", func() bool { return r.Summary().Unhandled == 1 })
		letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{Messages: true})
		if err != nil || len(letters) != 1 || strings.Contains(letters[0].Reason, "hunter2") {
			t.Errorf("got %+v, %v", letters, err)
		}
	}
	r, err := handOver(pipeline.Pushed{URL: pushedURL, ContentType: "text/html", Body: make([]byte, pipeline.MaxPushed+1)})
	if err != nil {
		t.Error(err)
	}
	dead(r)
	for _, url := range []string{"", "example.com", "http://user:hunter2@example.com/"} {
		r, err := handOver(pipeline.Pushed{URL: url, ContentType: "text/html", Body: []byte("x")})
		if !errors.Is(err, pipeline.ErrUnusable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want that it can never be used", url, err)
		}
		dead(r)
	}
	cfg.Transport = closedIngest{openTransport(t, "")}
	if _, err := handOver(pipeline.Pushed{URL: pushedURL, Text: "x"}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v, want that it was not taken", err)
	}
}

func TestSourcesFeedTheRouter(t *testing.T) {
	m := newMailbox()
	cfg := pushedConfig(m, nil)
	ended := make(chan struct{})
	cfg.Sources = map[string]pipeline.Source{"crawler": pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
		defer close(ended)
		for _, text := range []string{"sold out", "in stock"} {
			if err := emit(ctx, pipeline.Pushed{URL: pushedURL, Text: text, ID: text}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})}
	_, stop := startRouter(t, cfg)
	<-m.arrived
	stop()
	<-ended
	if got := m.take(); len(got) != 1 || got[0].Diffs[0].Keyword != "stock" {
		t.Errorf("got %+v", got)
	}
	for _, s := range []pipeline.Source{nil, invalidSource{}} {
		cfg.Sources["crawler"] = s
		if _, err := vokter.New(cfg); err == nil || !strings.Contains(err.Error(), `source "crawler"`) {
			t.Errorf("New: %v, want what is wrong with the source", err)
		}
	}
	cfg = vokter.Config{Documents: []vokter.Document{{URL: pushedURL, Interval: pipeline.Every(time.Hour)}}}
	if _, err := vokter.New(cfg); err == nil || !strings.Contains(err.Error(), "document 1") {
		t.Errorf("New: %v, want that a document has no interval", err)
	}
}

type invalidSource struct{ pipeline.Source }

func (invalidSource) Validate() error { return errors.New("no") }

// pushedURL is a page that cannot be fetched.
const pushedURL = "https://nowhere.example/stock"

// pushedConfig is a Config whose page is only pushed.
func pushedConfig(box pipeline.Sink, transport flow.Transport) vokter.Config {
	return vokter.Config{Transport: transport, Sinks: map[string]pipeline.Sink{"box": box}, Subscriptions: []pipeline.Subscription{{
		URL: pushedURL, Keywords: []string{"stock"}, Sinks: []string{"box"}, Interval: pipeline.Never,
	}}}
}

// ingest writes to TopicIngest as another program does.
func ingest(t *testing.T, transport *local.Transport, body []byte, headers ...string) {
	t.Helper()
	m := message.NewMessage("any", body)
	for i := 0; i < len(headers); i += 2 {
		m.Metadata.Set(headers[i], headers[i+1])
	}
	if err := transport.Publisher().Publish(flow.TopicIngest, m); err != nil {
		t.Fatal(err)
	}
}

// bodyCollector keeps the bodies of a topic's messages.
type bodyCollector[T any] struct {
	mu  sync.Mutex
	all []T
}

func (g *bodyCollector[T]) Process(_ context.Context, _ flow.Tx, m flow.Message) error {
	var v T
	err := json.Unmarshal(m.Body, &v)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, v)
	return err
}

func (g *bodyCollector[T]) bodies() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[:len(g.all):len(g.all)]
}

func TestPagesThatArePushed(t *testing.T) {
	m, changes := newMailbox(), &bodyCollector[flow.Change]{}
	transport := openTransport(t, "")
	r, err := vokter.New(pushedConfig(m, transport))
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("data", flow.TopicChanges, changes)
	stop := startInBackground(t, r)
	defer stop()

	// What needs nothing but a subject and a type, with names as people write them.
	ingest(t, transport, []byte("<p>Zeus: none."), "ce_subject", pushedURL, "Content-Type", "text/html")
	waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
	ingest(t, transport, []byte("<p>Zeus: in stock."), "ce_subject", pushedURL, "content-type", "text/html", "ce_id", "2", "ce_time", "2026-11-21T10:00:00Z")
	<-m.arrived
	got := m.take()
	if len(got) != 1 || got[0].URL != pushedURL || len(got[0].Diffs) != 1 || got[0].Diffs[0].Keyword != "stock" {
		t.Errorf("got %+v, want one notification", got)
	}
	// Under the same ID with another body, and another page that nobody watches.
	ingest(t, transport, []byte("<p>Zeus: out of stock."), "ce_subject", pushedURL, "content-type", "text/html", "ce_id", "2")
	ingest(t, transport, []byte("<p>x"), "ce_subject", "https://nobody.example/", "content-type", "text/html")
	waitFor(t, "a repeated and an unwatched page", func() bool { return r.Summary().Repeated == 1 && r.Summary().Unwatched == 1 })
	// The same text as plain text is no change.
	ingest(t, transport, []byte("Zeus: in stock."), "ce_subject", pushedURL, "content-type", "text/plain")
	waitFor(t, "3 pushed pages", func() bool { return r.Summary().Pushed == 3 })
	if c := changes.bodies(); len(c) != 1 || c[0].Version != 2 || c[0].Check != 0 || c[0].Time.Format("15:04") != "10:00" {
		t.Errorf("got changes %+v, want one to version 2 at the time of the page", c)
	}
	if s := r.Summary(); s.Checks != 0 || s.Dead != 0 || s.Notifications != 1 {
		t.Errorf("got %+v, want no check, nothing dead, one notification", s.Counts)
	}
	e, err := r.Explain(t.Context(), pushedURL, inspect.ExplainFilter{})
	if err != nil || len(e.Checks) != 3 || e.Checks[0].Check != 0 || !e.Page.NextCheck.IsZero() || !e.Page.Pushed || !e.Page.LastCheck.Equal(e.Checks[0].Time) {
		t.Errorf("got %+v, %v, want three pages and no next check", e, err)
	}
}

// TestPoisonGoesToTheDeadLetters writes what can never be handled, and one page behind it.
func TestPoisonGoesToTheDeadLetters(t *testing.T) {
	transport := openTransport(t, "")
	r, err := vokter.New(pushedConfig(newMailbox(), transport))
	if err != nil {
		t.Fatal(err)
	}
	dead := &bodyCollector[flow.DeadLetter]{}
	r.Handle("undertaker", flow.TopicDead, dead)
	stop := startInBackground(t, r)
	defer stop()
	good := map[string]string{"ce_subject": pushedURL, "content-type": "text/html"}
	poison := map[string]struct {
		change map[string]string
		body   []byte
	}{
		"no header ce_subject":              {map[string]string{"ce_subject": ""}, nil},
		"not an absolute URL":               {map[string]string{"ce_subject": "stock"}, nil},
		"no header content-type":            {map[string]string{"content-type": ""}, nil},
		`no reader for pages of type "appl`: {map[string]string{"content-type": "application/x-none"}, nil},
		"ce_time":                           {map[string]string{"ce_time": "yesterday"}, nil},
		`ce_type is "com.example"`:          {map[string]string{"ce_type": "com.example"}, nil},
		"the page is empty":                 {nil, []byte(" ")},
		"is not UTF-8":                      {map[string]string{"content-type": "text/html; charset=utf-8"}, []byte("caf\xe9")},
		"larger than 2 MiB":                 {map[string]string{"content-type": "text/plain"}, bytes.Repeat([]byte("word "), pipeline.MaxText/5+1)},
		"at most 4194304 are taken":         {nil, bytes.Repeat([]byte("<p>word"), pipeline.MaxPushed/7+1)},
	}
	for _, p := range poison {
		h := maps.Clone(good)
		maps.Copy(h, p.change)
		var list []string
		for name, value := range h {
			if value != "" {
				list = append(list, name, value)
			}
		}
		if p.body == nil {
			p.body = []byte("<p>x")
		}
		ingest(t, transport, p.body, list...)
	}
	ingest(t, transport, []byte("<p>fine"), "ce_subject", pushedURL, "content-type", "text/html")
	waitFor(t, "the dead letters and the pushed page", func() bool { return len(dead.bodies()) == len(poison) && r.Summary().Pushed == 1 })
	for want := range poison {
		found := false
		for _, d := range dead.bodies() {
			if strings.Contains(d.Reason, want) {
				found = true
				if len(d.Body) > 512<<10 {
					t.Errorf("%s: its dead letter holds %d bytes", want, len(d.Body))
				}
			}
		}
		if !found {
			t.Errorf("no dead letter says %q", want)
		}
	}
	checkDeadLettersShown(t, r, len(poison))
}

// checkDeadLettersShown checks that n messages that could not be handled are counted and listed, and
// that none is replayed.
func checkDeadLettersShown(t *testing.T, r *vokter.Router, n int) {
	t.Helper()
	waitFor(t, "the unhandled messages", func() bool { return r.Summary().Unhandled == n })
	for f, want := range map[flow.DeadFilter]int{
		{}: 0, {Messages: true}: n, {Messages: true, Sink: "box"}: 0, {Messages: true, Client: "default"}: 0,
		{Messages: true, URL: pushedURL}: n - 2, // the others have no such URL
	} {
		letters, err := r.DeadLetters(t.Context(), f)
		if err != nil || len(letters) != want {
			t.Errorf("%+v: got %d letters, %v, want %d", f, len(letters), err, want)
		}
		for _, d := range letters {
			if d.Reason == "" || len(d.Body) > 0 {
				t.Errorf("got %+v, want a reason and no body", d)
			}
		}
		if n, err := r.Replay(t.Context(), f); n != 0 || err != nil {
			t.Errorf("%+v: %d were replayed, %v", f, n, err)
		}
	}
	for _, g := range r.Gauges() {
		if g.Name == "vokter_unhandled_messages_total" && g.Value != float64(n) {
			t.Errorf("got %v unhandled messages, want %d", g.Value, n)
		}
	}
}

// TestAPushedPageSurvivesACrash ends the process in each of the steps.
func TestAPushedPageSurvivesACrash(t *testing.T) {
	for _, group := range []string{flow.GroupFetch, flow.GroupIndex, flow.GroupDiff, flow.GroupMatch} {
		t.Run(group, func(t *testing.T) {
			m, dir := newMailbox(), t.TempDir()
			transport := openTransport(t, dir)
			cfg := pushedConfig(m, transport)
			r, stop := startRouter(t, cfg)
			ingest(t, transport, []byte("<p>none"), "ce_subject", pushedURL, "content-type", "text/html")
			waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
			stop()
			transport = openTransport(t, dir)
			broken := cfg
			broken.Transport = transport
			broken.Middleware = map[string][]flow.Middleware{group: {func(next flow.Processor) flow.Processor {
				return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, msg flow.Message) error {
					err := next.Process(ctx, tx, msg)
					switch msg.Type {
					case flow.TypePage, flow.TypePushed, flow.TypeSnapshot, flow.TypeChange:
						return failure.Broken(errors.New("the end"))
					}
					return err
				})
			}}}
			r, err := vokter.New(broken)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- r.Run(t.Context()) }()
			<-r.Running()
			ingest(t, transport, []byte("<p>in stock"), "ce_subject", pushedURL, "content-type", "text/html")
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "the end") {
				t.Fatalf("Run: %v", err)
			}
			if got := m.take(); len(got) != 0 {
				t.Fatalf("got %+v before the end", got)
			}
			cfg.Transport = openTransport(t, dir)
			_, stop = startRouter(t, cfg)
			<-m.arrived
			stop()
			if got := m.take(); len(got) != 1 {
				t.Errorf("got %+v, want one notification", got)
			}
		})
	}
}

// TestKeptPagesAreOnlyPushed has no subscription, and a limited run that waits for no check.
func TestKeptPagesAreOnlyPushed(t *testing.T) {
	dir := t.TempDir()
	transport := openTransport(t, dir)
	cfg := vokter.Config{Documents: []vokter.Document{{URL: pushedURL, Keep: true, Interval: pipeline.Never}}, Transport: transport}
	r, stop := startRouter(t, cfg)
	ingest(t, transport, []byte("one"), "ce_subject", pushedURL, "content-type", "text/plain", "vokter_key", pushedURL)
	ingest(t, transport, []byte("two"), "ce_subject", pushedURL, "content-type", "text/plain", "vokter_key", pushedURL)
	waitFor(t, "the change", func() bool { return r.Summary().Changes == 1 })
	stop()
	cfg.Checks, cfg.Transport = 1, openTransport(t, dir)
	if s := runToEnd(t, cfg).Summary(); s.Checks != 0 || s.Failed != 0 {
		t.Errorf("got %+v, want no check", s.Counts)
	}
}
