package vokter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// invalid is a sink that knows it cannot deliver.
type invalid struct{ SinkFunc }

func (invalid) Validate() error { return errors.New("its secret is too short") }

func TestWhatNewRefuses(t *testing.T) {
	good := SinkFunc(func(context.Context, Notification) error { return nil })
	for want, cfg := range map[string]Config{
		"its secret is too short":            {Sinks: map[string]Sink{"x": invalid{good}}},
		`sink "x" is nil`:                    {Sinks: map[string]Sink{"x": nil}},
		`origin "api"`:                       {Origin: "api"},
		`"indx" is no stage`:                 {Middleware: map[string][]Middleware{"indx": {}}},
		`middleware of "index" is nil`:       {Middleware: map[string][]Middleware{"index": {nil}}},
		"reader or stemmer is nil":           {Readers: []Reader{nil}},
		"versions must not":                  {Versions: -1},
		"a number of fetch must not":         {Fetch: FetchConfig{Rate: -1}},
		"a delay of delivery must not":       {Delivery: DeliveryConfig{DeadAfter: -1}},
		"only: ":                             {Only: []string{"nowhere"}},
		"has a user name or password in it":  {Documents: []Document{{URL: "https://user:secret@example.com"}}},
		"document 1: ":                       {Documents: []Document{{}}},
		"it is document 1 already":           {Documents: []Document{{URL: "https://example.com", Keep: true}, {URL: "https://example.com/#a", Keep: true}}},
		"without Keep it would do nothing":   {Documents: []Document{{URL: "https://example.com"}}},
		`"my sink" cannot be the name`:       {Sinks: map[string]Sink{"my sink": good}},
		`"" cannot be the name`:              {Sinks: map[string]Sink{"": good}},
		`"a\x00" cannot be the name`:         {Sinks: map[string]Sink{"a\x00": good}},
		"every must not be negative":         {Every: new(time.Duration(-1))},
		"has no valid port; ports are 1 to ": {Documents: []Document{{URL: "https://example.com:99999"}}},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

func TestHandleRefuses(t *testing.T) {
	p := pipeline.ProcessorFunc(func(context.Context, pipeline.Tx, pipeline.Message) error { return nil })
	for want, handle := range map[string]func(*Router){
		"is not a free group name":     func(r *Router) { r.Handle(pipeline.GroupIndex, "t", p) },
		"is nil":                       func(r *Router) { r.Handle("g", "t", nil) },
		`group "g" consumes "t" twice`: func(r *Router) { r.Handle("g", "t", p); r.Handle("g", "t", p) },
	} {
		r, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		handle(r)
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: %v, want %q", err, want)
		}
	}
	// Names that would be one if they were only joined.
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("a/b", "c", p)
	r.Handle("a", "b/c", p)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-r.Running(); cancel() }()
	if err := r.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := r.Subscribe(t.Context(), Subscription{URL: "https://example.com", Keywords: []string{"a"}, Sinks: []string{"x"}}); err == nil {
		t.Error("Subscribe after Run succeeded")
	}
	if err := r.Cancel(t.Context(), "https://example.com", "c"); !errors.Is(err, ErrStopped) {
		t.Errorf("Cancel after Run: %v, want ErrStopped", err)
	}
}
