package manage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// Why a stream ends.
var (
	errSlow    = fmt.Errorf("the client is more than %d events behind; connect again", eventBuffer)
	errRevoked = errors.New("the token was changed or removed")
)

const (
	// eventBuffer is how many events wait for a slow reader before it is dropped.
	eventBuffer = 256
	// maxStreams is how many streams of events are open at once, so that connections remain for
	// other requests.
	maxStreams = 64
	// pingInterval is the time between two events ping, which keep proxies from closing a stream.
	pingInterval = 15 * time.Second
)

// EventsInput selects live events.
type EventsInput struct {
	OptionalPage
	Client string `query:"client" doc:"Only notifications of this client, and no changes."`
	Type   string `query:"type" enum:"change,notification" doc:"Only events of this type."`
}

func (a *api) addEvents() {
	r := route{
		method: http.MethodGet, path: "/events", id: "stream-events", scope: config.ScopeRead,
		summary: "Streams changes and notifications as Server-Sent Events while they happen",
		description: "The event ping comes at the start and every 15 seconds. What happened before is in /changes and /deliveries. A reader that is more than " +
			"256 events behind gets the event dropped, and the stream ends. Where several processes share the pages, each streams what it handles.",
	}
	op := r.operation()
	op.Middlewares = huma.Middlewares{a.limitStreams}
	sse.Register(a.API, op, map[string]any{
		"ping": client.PingEvent{}, "change": client.ChangeEvent{}, "notification": client.NotificationEvent{}, "dropped": client.DroppedEvent{},
	}, a.streamEvents)
}

// limitStreams is a middleware that refuses a stream of events where too many are open.
func (a *api) limitStreams(c huma.Context, next func(huma.Context)) {
	who := callerOf(c.Context())
	if !who.streams.acquire() {
		c.SetHeader("Retry-After", "5")
		_ = huma.WriteErr(a.API, c, http.StatusTooManyRequests, tooManyAtOnce(who, who.Quota.Streams, "streams of events", "streams").Error())
		return
	}
	defer who.streams.release()
	select {
	case a.streamSlots <- struct{}{}:
		defer func() { <-a.streamSlots }()
		next(c)
	default:
		c.SetHeader("Retry-After", "5")
		_ = huma.WriteErr(a.API, c, http.StatusServiceUnavailable, "too many streams of events are open; close one")
	}
}

// streamEvents sends events until the client goes away, is too slow, or its token is not valid any more.
func (a *api) streamEvents(ctx context.Context, in *EventsInput, send sse.Sender) {
	page := ""
	if in.URL != "" {
		page, _ = pageurl.Canonical(in.URL) // limitStreams checked it
	}
	events := make(chan flow.Observation, eventBuffer)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := a.service.Observe(func(ob flow.Observation) {
		if !in.selects(ob, page) {
			return
		}
		select {
		case events <- ob:
		default:
			cancel(errSlow)
		}
	})
	defer stop()
	if send.Data(client.PingEvent{Time: time.Now()}) != nil {
		return
	}
	quiet := time.NewTicker(pingInterval)
	defer quiet.Stop()
	who := callerOf(ctx)
	for {
		select {
		case ob := <-events:
			if who.isRevoked() {
				break
			}
			if event := a.visibleEvent(ctx, ob); event != nil && send.Data(event) != nil {
				return
			}
			continue
		case <-quiet.C:
			if send.Data(client.PingEvent{Time: time.Now()}) != nil {
				return
			}
			continue
		case <-who.revoked:
		case <-ctx.Done():
		}
		if who.isRevoked() {
			cancel(errRevoked)
		}
		if why := context.Cause(ctx); errors.Is(why, errSlow) || errors.Is(why, errRevoked) {
			_ = send.Data(client.DroppedEvent{Reason: why.Error()}) // the stream ends either way
		}
		return
	}
}

// selects reports whether in selects ob; page is the canonical URL of in.URL.
func (in *EventsInput) selects(ob flow.Observation, page string) bool {
	switch {
	case page != "" && ob.Page != page:
		return false
	case ob.Kind == flow.KindChange:
		return in.Type != "notification" && in.Client == ""
	case ob.Kind == flow.KindNotification && ob.Addressed != nil:
		return in.Type != "change" && (in.Client == "" || ob.Addressed.Notification.Client == in.Client)
	}
	return false
}

// visibleEvent returns what the caller may see of ob, or nil.
func (a *api) visibleEvent(ctx context.Context, ob flow.Observation) any {
	who := callerOf(ctx)
	if ob.Kind == flow.KindNotification {
		if !who.mayUseClient(ob.Addressed.Notification.Client) {
			return nil
		}
		return client.NotificationEvent{Page: ob.Page, Document: ob.Document, Sink: ob.Addressed.Receiver.Sink, Notification: ob.Addressed.Notification}
	}
	if who.Clients != nil {
		pages, _, err := a.service.Pages(ctx, inspect.ListFilter{URL: ob.Page, Clients: who.Clients})
		if err != nil || len(pages) == 0 || !slices.ContainsFunc(pages[0].Documents, func(d inspect.Document) bool { return d.ID == ob.Document }) {
			return nil
		}
	}
	return client.ChangeEvent{Page: ob.Page, Document: ob.Document, ID: ob.ID, Version: uint64(ob.N), Time: ob.Time}
}
