package vokter

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// outlet keeps what is published.
type outlet struct {
	all []flow.Message
	err error
}

func (o *outlet) Publish(_ context.Context, ms ...flow.Message) error {
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
	out, now, runs := &outlet{}, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), 0
	var pauses []time.Duration
	f := &feeder{
		publisher: out, log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now },
		sleep: func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil },
	}
	f.source = pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
		switch runs++; runs {
		case 3: // it works for a moment: that ends the outage
			if err := emit(ctx, pipeline.Pushed{URL: nowhere, Text: "x"}); err != nil {
				return err
			}
		case 5:
			panic("no")
		case 7: // it works for long, though nothing comes
			now = now.Add(steadyAfter)
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
	if got := strings.Count(log.String(), "a source failed"); got != 3 {
		t.Errorf("told %d times, want once for each of three outages:\n%s", got, log.String())
	}
	if len(out.all) != 1 || out.all[0].Topic != flow.TopicIngest || out.all[0].Key != nowhere {
		t.Errorf("got %+v", out.all)
	}
}

func TestWhatASourceHandsOver(t *testing.T) {
	out := &outlet{}
	f := &feeder{publisher: out, log: slog.New(slog.DiscardHandler), now: time.Now, sleep: sleepContext}
	for _, size := range []int{pipeline.MaxPushed, pipeline.MaxPushed + 1} {
		if err := f.emit(t.Context(), pipeline.Pushed{URL: nowhere, ContentType: "text/html", Body: make([]byte, size)}); err != nil {
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
	if err := f.emit(t.Context(), pipeline.Pushed{URL: nowhere, Text: "x"}); !errors.Is(err, out.err) {
		t.Errorf("got %v, want that it was not taken", err)
	}
	f.source = pipeline.SourceFunc(func(context.Context, pipeline.Emit) error { return nil })
	f.run(t.Context()) // it has an end
}

func TestSourcesFeedTheRouter(t *testing.T) {
	m := newMailbox()
	cfg := pushedTo(m, "")
	ended := make(chan struct{})
	cfg.Sources = map[string]pipeline.Source{"crawler": pipeline.SourceFunc(func(ctx context.Context, emit pipeline.Emit) error {
		defer close(ended)
		for _, text := range []string{"sold out", "in stock"} {
			if err := emit(ctx, pipeline.Pushed{URL: nowhere, Text: text, ID: text}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})}
	_, stop := lives(t, cfg)
	<-m.came
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
	cfg = Config{Documents: []Document{{URL: nowhere, Interval: pipeline.Duration(time.Hour)}}}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "document 1") {
		t.Errorf("New: %v, want that a document has no interval", err)
	}
}

type invalidSource struct{ pipeline.Source }

func (invalidSource) Validate() error { return errors.New("no") }
