// Package voktertest tests programs that embed a Router: without a network, and in simulated time.
//
// In a bubble of testing/synctest hours pass in milliseconds. The checks of pages, retries, digests and quiet hours
// come at their times, and a test sleeps until the hour it wants to look at:
//
//	synctest.Test(t, func(t *testing.T) {
//		web, inbox := new(voktertest.Web), new(voktertest.Inbox)
//		web.Set(lamp, "<p>in stock</p>")
//		voktertest.Run(t, web, vokter.Config{
//			Sinks:         map[string]pipeline.Sink{"inbox": inbox},
//			Subscriptions: []pipeline.Subscription{{URL: lamp, Keywords: []string{"out of stock"}, Sinks: []string{"inbox"}}},
//		})
//		web.Set(lamp, "<p>out of stock</p>")
//		time.Sleep(time.Hour)
//		if n := inbox.Notifications(); len(n) != 1 { ... }
//	})
//
// A bubble cannot wait for a network, so what a test reads comes from a Web, and what it sends goes to an Inbox or to
// a sink of its own without connections. Config.Dir may be set: files are read and written as always.
package voktertest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// Run runs a Router of cfg over web until the end of the test, and returns it once it works. It logs to the test.
// The test fails where the Router cannot be made, cannot start, or ends with an error.
func Run(t testing.TB, web *Web, cfg vokter.Config) *vokter.Router {
	t.Helper()
	cfg.Fetchers = append([]pipeline.Fetcher{web}, cfg.Fetchers...)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Router.Run: %v", err)
		}
	})
	select {
	case <-r.Running():
	case err := <-ended:
		ended <- nil
		t.Fatalf("Router.Run: %v", err)
	}
	return r
}

// Inbox is a sink that records what it is told. The zero Inbox is empty and accepts everything. It is safe for
// concurrent use.
type Inbox struct {
	mu   sync.Mutex
	got  []pipeline.Notification
	fail error
}

var _ pipeline.Sink = (*Inbox)(nil)

// Deliver records n, or returns the error of Fail.
func (b *Inbox) Deliver(_ context.Context, n pipeline.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	b.got = append(b.got, n)
	return nil
}

// Notifications returns what was delivered so far, in order.
func (b *Inbox) Notifications() []pipeline.Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// Fail makes later deliveries fail with err, so that they are tried again; nil ends that. The functions of package
// pipeline/failure mark an error as that of a receiver that refuses a notification, asks for a pause or is gone.
func (b *Inbox) Fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}
