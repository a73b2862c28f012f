//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// BenchmarkBacklog measures how fast a Router on disk delivers the notifications that wait for one webhook
// at its start. Meanwhile it checks 1,000 unchanged pages each second. One op is one notification.
func BenchmarkBacklog(b *testing.B) {
	const pages = 1000
	site := httptest.NewServer(&site{body: page(article(1)[:300]), conditional: true})
	defer site.Close()
	var first, last atomic.Int64 // when posts arrived, in Unix nanoseconds
	var arrived atomic.Int64
	done := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Error(err)
		}
		now := time.Now().UnixNano()
		first.CompareAndSwap(0, now)
		if arrived.Add(1) == int64(b.N) {
			last.Store(now)
			close(done)
		}
	}))
	defer receiver.Close()
	hook := webhook.Config{URL: registry.NewSecret(receiver.URL)}
	hook.Allow = loopback
	sink, err := webhook.New(hook)
	if err != nil {
		b.Fatal(err)
	}

	cfg := watched(site.URL, b.TempDir(), pages, 1)
	runOnce(b, cfg)
	wait(b, cfg.Dir, b.N)
	cfg.Sinks["hook"] = sink
	cfg.Checks, cfg.Every, cfg.Fetch.MinInterval = 0, nil, time.Second
	for i := range cfg.Subscriptions {
		cfg.Subscriptions[i].Interval = pipeline.Interval{Every: pipeline.Duration(time.Second)}
	}
	r, err := vokter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	began := time.Now()
	go func() { ran <- r.Run(ctx) }()
	select {
	case <-done:
	case err := <-ran:
		b.Fatal("the Router ended: ", err)
	}
	took := time.Since(began)
	stop()
	if err := <-ran; err != nil {
		b.Error(err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(r.Summary().Checks)/took.Seconds(), "checks/s")
	b.ReportMetric(float64(b.N-1)/(time.Duration(last.Load()-first.Load())+1).Seconds(), "deliveries/s")
}

// wait leaves n notifications for the sink "hook" in the store in dir.
func wait(b *testing.B, dir string, n int) {
	t, err := local.Open(local.Config{Dir: dir, Bound: n + 1})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		m, err := flow.Addressed{
			Receiver: pipeline.Receiver{Sink: "hook"}, Document: "D", Subscription: "S",
			Notification: pipeline.Notification{
				ID: flow.DeriveID("backlog", fmt.Sprint(i)), URL: "https://example.com/", Status: pipeline.StatusOK, Type: pipeline.NotificationType, Time: time.Now(),
				Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "... Argus' wakeful alertness ..."}},
			},
		}.Message()
		if err == nil {
			err = t.Unsynced().Publish(context.Background(), m)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := t.Close(); err != nil {
		b.Fatal(err)
	}
}
