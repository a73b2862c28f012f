package vokter

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestSink sends a test message through the sink called name, once and beside the notifications that
// wait for it, within the timeout of the sink. If that succeeds, what waits is attempted at once. It returns the
// error of the sink, and a *flow.Refusal where there is no such sink. It waits until the Router runs.
func (r *Router) TestSink(ctx context.Context, name string) error {
	if err := r.waitReadable(ctx); err != nil {
		return err
	}
	known, err := r.stages.delivery.Try(ctx, name, TestNotification(r.cfg.Now()))
	if !known {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no sink is named %q; %s", name, nearest.Hint(name, r.sinkNames()))}
	}
	if err == nil {
		if _, failed := r.Retry(ctx, RetryFilter{Sink: name}); failed != nil {
			r.cfg.Logger.Warn("the notifications that wait for a tested sink are attempted when they are due, not at once", "sink", name, "err", failed)
		}
	}
	return err
}

// TestNotification returns the notification that a test of a sink sends. Each of its parts says that it is a test,
// because not every receiver shows all parts.
func TestNotification(now time.Time) pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/vokter-test", ID: flow.DeriveID("test", rand.Text()),
		Type: pipeline.NotificationTypeTest, Time: now.UTC(), Client: "test", Title: "Test message of vokter-stream", Language: "en",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "test", Text: "this is a test, no page changed", Snippet: "Here stands what was added: this is a test, no page changed ...", Offset: 28},
			{Event: pipeline.Removed, Keyword: "test", Text: "the text before the test", Snippet: "Here stands what was removed: the text before the test ...", Offset: 30},
		},
	}
}
