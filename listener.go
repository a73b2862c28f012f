package vokter

import (
	"context"

	"github.com/vokter/vokter/pipeline"
)

// Listener is a Sink of functions, for programs that handle changes and timeouts apart.
// An error brings the notification again later; a function that is nil takes everything.
type Listener struct {
	// OnNotification is called with the matches of one change, or where the subscription has a
	// digest with those of several, n.Items.
	OnNotification func(ctx context.Context, n pipeline.Notification) error
	// OnTimeout is called once for each client of a page that failed too often: its
	// subscriptions there have ended.
	OnTimeout func(ctx context.Context, n pipeline.Notification) error
	// OnHealth is called with health events, where the sink is among Config.Health.
	OnHealth func(ctx context.Context, n pipeline.Notification) error
}

var _ pipeline.Sink = Listener{}

// Deliver calls the function for n.
func (l Listener) Deliver(ctx context.Context, n pipeline.Notification) error {
	f := l.OnNotification
	switch {
	case n.Type == pipeline.NotificationTypeHealth:
		f = l.OnHealth
	case n.Status == pipeline.StatusTimeout:
		f = l.OnTimeout
	}
	if f == nil {
		return nil
	}
	return f(ctx, n)
}
