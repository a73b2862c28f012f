package vokter

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
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// recordingPublisher keeps what is published.
type recordingPublisher struct {
	all []flow.Message
	err error
}

func (o *recordingPublisher) Publish(_ context.Context, ms ...flow.Message) error {
	if o.err == nil {
		o.all = append(o.all, ms...)
	}
	return o.err
}

// TestASourceIsRunAgain lets one fail, which is told once for each outage.
func TestASourceIsRunAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log bytes.Buffer
	out, now, runs := &recordingPublisher{}, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), 0
	var pauses []time.Duration
	f := &sourceRunner{
		publisher: out, log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now },
		sleep: func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil },
	}
	f.source = pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
		switch runs++; runs {
		case 3: // it works for a moment: that ends the outage
			if err := emit(ctx, pipeline.Pushed{URL: pushedURL, Text: "x"}); err != nil {
				return err
			}
		case 5:
			panic("no")
		case 7: // it works for long, though nothing comes
			now = now.Add(healthyAfter)
		case 8:
			cancel()
		}
		return errors.New("away")
	})
	f.run(ctx)
	s := time.Second
	if want := []time.Duration{s, 2 * s, s, 2 * s, 5 * s, 15 * s, s}; !slices.Equal(pauses, want) {
		t.Errorf("paused for %v, want %v", pauses, want)
	}
	if got := strings.Count(log.String(), "\n"); got != 3 || strings.Count(log.String(), "a source failed") != 3 {
		t.Errorf("told %d times, want once for each of three outages:\n%s", got, log.String())
	}
	if len(out.all) != 1 || out.all[0].Topic != flow.TopicIngest || out.all[0].Key != pushedURL {
		t.Errorf("got %+v", out.all)
	}
}

func TestWhatASourceHandsOver(t *testing.T) {
	out := &recordingPublisher{}
	f := &sourceRunner{publisher: out, log: slog.New(slog.DiscardHandler), now: time.Now, sleep: sleepContext}
	for _, size := range []int{pipeline.MaxPushed, pipeline.MaxPushed + 1} {
		if err := f.emit(t.Context(), pipeline.Pushed{URL: pushedURL, ContentType: "text/html", Body: make([]byte, size)}); err != nil {
			t.Error(err)
		}
	}
	if len(out.all) != 2 || out.all[0].Topic != flow.TopicIngest || out.all[1].Topic != flow.TopicDead || len(out.all[1].Body) > 4096 {
		t.Errorf("got %d messages, want a page and a small dead letter", len(out.all))
	}
	for _, url := range []string{"", "example.com", "http://user:hunter2@example.com/"} {
		err := f.emit(t.Context(), pipeline.Pushed{URL: url, ContentType: "text/html", Body: []byte("x")})
		if !errors.Is(err, pipeline.ErrUnusable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want that it can never be used", url, err)
		}
		if m := out.all[len(out.all)-1]; m.Topic != flow.TopicIngest || m.Subject != url {
			t.Errorf("%q: got %+v, want it on its way to the dead letters", url, m)
		}
	}
	out.err = errors.New("no room")
	if err := f.emit(t.Context(), pipeline.Pushed{URL: pushedURL, Text: "x"}); !errors.Is(err, out.err) {
		t.Errorf("got %v, want that it was not taken", err)
	}
	f.source = pipeline.SourceFunc(func(context.Context, pipeline.Emit) error { return nil })
	f.run(t.Context()) // it has an end
}

func TestSourcesFeedTheRouter(t *testing.T) {
	m := newMailbox()
	cfg := pushedConfig(m, "")
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
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `source "crawler"`) {
			t.Errorf("New: %v, want what is wrong with the source", err)
		}
	}
	cfg = Config{Documents: []Document{{URL: pushedURL, Interval: pipeline.Every(time.Hour)}}}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "document 1") {
		t.Errorf("New: %v, want that a document has no interval", err)
	}
}

type invalidSource struct{ pipeline.Source }

func (invalidSource) Validate() error { return errors.New("no") }

// pushedURL is a page that cannot be fetched.
const pushedURL = "https://nowhere.example/stock"

// pushedConfig is a Config whose page is only pushed.
func pushedConfig(box pipeline.Sink, dir string) Config {
	return Config{Dir: dir, Sinks: map[string]pipeline.Sink{"box": box}, Subscriptions: []pipeline.Subscription{{
		URL: pushedURL, Keywords: []string{"stock"}, Sinks: []string{"box"}, Interval: pipeline.Never,
	}}}
}

// ingest writes to TopicIngest as another program does.
func ingest(t *testing.T, r *Router, body []byte, headers ...string) {
	t.Helper()
	m := message.NewMessage("any", body)
	for i := 0; i < len(headers); i += 2 {
		m.Metadata.Set(headers[i], headers[i+1])
	}
	if err := r.transport.(*local.Transport).Publisher().Publish(flow.TopicIngest, m); err != nil {
		t.Fatal(err)
	}
}

// startInBackground runs r until stop is called.
func startInBackground(t *testing.T, r *Router) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Running():
	case err := <-ended:
		t.Fatalf("Run: %v", err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
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
	r, err := New(pushedConfig(m, ""))
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("data", flow.TopicChanges, changes)
	stop := startInBackground(t, r)
	defer stop()

	// What needs nothing but a subject and a type, with names as people write them.
	ingest(t, r, []byte("<p>Zeus: none."), "ce_subject", pushedURL, "Content-Type", "text/html")
	waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
	ingest(t, r, []byte("<p>Zeus: in stock."), "ce_subject", pushedURL, "content-type", "text/html", "ce_id", "2", "ce_time", "2026-11-21T10:00:00Z")
	<-m.arrived
	got := m.take()
	if len(got) != 1 || got[0].URL != pushedURL || len(got[0].Diffs) != 1 || got[0].Diffs[0].Keyword != "stock" {
		t.Errorf("got %+v, want one notification", got)
	}
	// Under the same ID with another body, and another page that nobody watches.
	ingest(t, r, []byte("<p>Zeus: out of stock."), "ce_subject", pushedURL, "content-type", "text/html", "ce_id", "2")
	ingest(t, r, []byte("<p>x"), "ce_subject", "https://nobody.example/", "content-type", "text/html")
	waitFor(t, "a repeated and an unwatched page", func() bool { return r.Summary().Repeated == 1 && r.Summary().Unwatched == 1 })
	// The same text as plain text is no change.
	ingest(t, r, []byte("Zeus: in stock."), "ce_subject", pushedURL, "content-type", "text/plain")
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
	r, err := New(pushedConfig(newMailbox(), ""))
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
		ingest(t, r, p.body, list...)
	}
	ingest(t, r, []byte("<p>fine"), "ce_subject", pushedURL, "content-type", "text/html")
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
func checkDeadLettersShown(t *testing.T, r *Router, n int) {
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
			m := newMailbox()
			cfg := pushedConfig(m, t.TempDir())
			r, stop := startRouter(t, cfg)
			ingest(t, r, []byte("<p>none"), "ce_subject", pushedURL, "content-type", "text/html")
			waitFor(t, "the baseline", func() bool { return r.Summary().Versions == 1 })
			stop()
			broken := cfg
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
			r, err := New(broken)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- r.Run(t.Context()) }()
			<-r.Running()
			ingest(t, r, []byte("<p>in stock"), "ce_subject", pushedURL, "content-type", "text/html")
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "the end") {
				t.Fatalf("Run: %v", err)
			}
			if got := m.take(); len(got) != 0 {
				t.Fatalf("got %+v before the end", got)
			}
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
	cfg := Config{Documents: []Document{{URL: pushedURL, Keep: true, Interval: pipeline.Never}}, Dir: t.TempDir()}
	r, stop := startRouter(t, cfg)
	ingest(t, r, []byte("one"), "ce_subject", pushedURL, "content-type", "text/plain", "vokter_key", pushedURL)
	ingest(t, r, []byte("two"), "ce_subject", pushedURL, "content-type", "text/plain", "vokter_key", pushedURL)
	waitFor(t, "the change", func() bool { return r.Summary().Changes == 1 })
	stop()
	cfg.Checks = 1
	if s := runToEnd(t, cfg).Summary(); s.Checks != 0 || s.Failed != 0 {
		t.Errorf("got %+v, want no check", s.Counts)
	}
}
