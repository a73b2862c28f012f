package manage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

func (a *api) addDeliveries() {
	type receiversInput struct {
		OptionalPage
		Client string `query:"client" doc:"Only receivers of subscriptions of this client."`
		Tag    string `query:"tag" doc:"Only receivers of subscriptions with this tag."`
		Sinks  bool   `query:"sinks" doc:"Adds the configured sinks that no notification was ever meant for."`
	}
	add(a, route{
		method: http.MethodGet, path: "/receivers", id: "list-receivers", scope: config.ScopeRead, allClients: true,
		summary:     "Lists receivers with their state and how many notifications wait for them",
		description: "Without url, client and tag these are the receivers with notifications or dead letters.",
	}, func(ctx context.Context, in *receiversInput) (client.Receivers, error) {
		found, err := a.service.Receivers(ctx, inspect.ListFilter{URL: in.URL, Client: in.Client, Tag: in.Tag, Sinks: in.Sinks})
		return client.Receivers{Receivers: append([]inspect.Receiver{}, found...)}, err
	})

	type deliveriesInput struct {
		Part
		OptionalPage
		Client  string `query:"client" doc:"Only notifications of this client."`
		Sink    string `query:"sink" doc:"Only notifications to this sink."`
		State   string `query:"state" enum:"pending,digest,delivered,dead,dropped,unrouted,forgotten,elsewhere" doc:"Only notifications whose delivery is in this state."`
		Partial bool   `query:"partial" doc:"As in /recent."`
	}
	add(a, route{
		method: http.MethodGet, path: "/deliveries", id: "list-deliveries", scope: config.ScopeRead,
		summary: "Lists the notifications of the last changes with their deliveries, the newest change first",
		description: "With url it lists those of one page, and all of them at once. Without url it lists those of the changes in /recent, and limit counts changes. " +
			"Where several processes share the pages, each lists its own.",
	}, func(ctx context.Context, in *deliveriesInput) (client.Deliveries, error) {
		d := client.Deliveries{Deliveries: []client.Delivery{}}
		if in.URL == "" {
			return a.recentDeliveries(ctx, in.Part, inspect.RecentFilter{Client: in.Client, Sink: in.Sink, Delivery: in.State, Partial: in.Partial})
		}
		changes, err := a.service.Deliveries(ctx, in.URL, inspect.ExplainFilter{Client: in.Client, Clients: callerOf(ctx).Clients})
		for _, c := range changes {
			for _, m := range c.Matches {
				if (in.Sink == "" || m.Sink == in.Sink) && (in.State == "" || m.Delivery == in.State) {
					d.Deliveries = append(d.Deliveries, newDelivery(in.URL, c, m))
				}
			}
		}
		return d, err
	})

	type deadInput struct {
		Part
		OptionalPage
		Sink     string    `query:"sink" doc:"Only dead letters of this sink."`
		Client   string    `query:"client" doc:"Only dead letters of this client."`
		Since    time.Time `query:"since" doc:"Only dead letters since then, such as 2026-01-31T15:04:05Z."`
		Messages bool      `query:"messages" doc:"Adds messages that could not be handled, such as pushed pages."`
	}
	add(a, route{
		method: http.MethodGet, path: "/dead-letters", id: "list-dead-letters", scope: config.ScopeRead,
		summary: "Lists notifications that could not be delivered, the oldest first",
	}, func(ctx context.Context, in *deadInput) (client.DeadLetters, error) {
		return a.listDeadLetters(ctx, in.Part, flow.DeadFilter{
			Sink: in.Sink, Client: in.Client, URL: in.URL, Since: in.Since, Messages: in.Messages,
		})
	})

	type retryInput struct{ Body flow.RetryFilter }
	add(a, route{
		method: http.MethodPost, path: "/retry", id: "retry-deliveries", scope: config.ScopeAdmin, allClients: true, timeout: longTimeout,
		summary: "Attempts pending notifications now", description: "Returns the receivers that have pending notifications, and does not wait for the attempts.",
	}, func(ctx context.Context, in *retryInput) (r client.RetriedReceivers, err error) {
		if in.Body.URL != "" {
			if err := checkURL("body.url", in.Body.URL); err != nil {
				return r, err
			}
		}
		r.Receivers, err = a.service.Retry(ctx, in.Body)
		return r, err
	})

	type testInput struct{ Body client.SinkRef }
	add(a, route{
		method: http.MethodPost, path: "/sinks/test", id: "test-sink", scope: config.ScopeAdmin, allClients: true, timeout: longTimeout,
		summary: "Sends a test message through a sink", description: "Once, whatever waits for the sink. The message says that it is a test.",
	}, func(ctx context.Context, in *testInput) (client.SinkTest, error) {
		err := a.service.TestSink(ctx, in.Body.Sink)
		if _, ok := errors.AsType[*flow.Refusal](err); ok || a.service.Ready() != nil && err != nil {
			return client.SinkTest{}, err
		}
		if err != nil {
			return client.SinkTest{Reason: err.Error()}, nil
		}
		return client.SinkTest{Delivered: true}, nil
	})

	type replayInput struct{ Body flow.DeadFilter }
	add(a, route{
		method: http.MethodPost, path: "/replay", id: "replay-dead-letters", scope: config.ScopeAdmin, allClients: true, timeout: longTimeout,
		summary: "Delivers dead letters again", description: "Without fields it delivers all.",
	}, func(ctx context.Context, in *replayInput) (r client.Replayed, err error) {
		if in.Body.URL != "" {
			if err := checkURL("body.url", in.Body.URL); err != nil {
				return r, err
			}
		}
		r.Replayed, err = a.service.Replay(ctx, in.Body)
		return r, err
	})
}

// recentDeliveries returns the deliveries of a part of the last changes of all pages.
func (a *api) recentDeliveries(ctx context.Context, p Part, f inspect.RecentFilter) (client.Deliveries, error) {
	d := client.Deliveries{Deliveries: []client.Delivery{}}
	after, err := a.cursors.open(ctx, "deliveries", p.Cursor)
	if err != nil {
		return d, err
	}
	f.Clients, f.After, f.Limit = callerOf(ctx).Clients, after, p.Limit
	found, err := a.service.Recent(ctx, f)
	for _, c := range found.Changes {
		for _, m := range c.Matches {
			d.Deliveries = append(d.Deliveries, newDelivery(c.URL, c.Change, m))
		}
	}
	d.Next, d.Partial = a.cursors.seal(ctx, "deliveries", found.Next), found.Partial
	return d, err
}

// newDelivery returns the delivery of the match m of c.
func newDelivery(url string, c inspect.Change, m inspect.Match) client.Delivery {
	return client.Delivery{URL: url, Change: c.ID, Document: c.Document, Version: c.Version, Time: c.Time, Match: m}
}

// listDeadLetters returns a part of the dead letters that f selects and the caller may see.
func (a *api) listDeadLetters(ctx context.Context, p Part, f flow.DeadFilter) (found client.DeadLetters, err error) {
	after, err := a.cursors.open(ctx, "dead-letters", p.Cursor)
	if err != nil {
		return found, err
	}
	who := callerOf(ctx)
	var first oldestLetters
	for d, err := range a.service.EachDeadLetter(ctx, f) {
		if err != nil {
			return found, err
		}
		key := letterKey(d)
		if key <= after || who.Clients != nil && (d.Addressed == nil || !who.mayUseClient(d.Addressed.Notification.Client)) {
			continue
		}
		first.add(keyedLetter{key, d}, p.Limit+1)
	}
	first.trim(p.Limit + 1) // one more tells whether there are others
	if len(first) > p.Limit {
		first = first[:p.Limit]
		found.Next = a.cursors.seal(ctx, "dead-letters", first[p.Limit-1].key)
	}
	found.DeadLetters = make([]flow.DeadLetter, 0, len(first))
	for _, l := range first {
		found.DeadLetters = append(found.DeadLetters, l.DeadLetter)
	}
	return found, nil
}

// keyedLetter is a dead letter with its letterKey.
type keyedLetter struct {
	key string
	flow.DeadLetter
}

// oldestLetters collects the first of many letters by their keys. It holds a few times as many in memory as it keeps.
type oldestLetters []keyedLetter

// add adds l, of which one of the first most may be kept.
func (o *oldestLetters) add(l keyedLetter, most int) {
	if *o = append(*o, l); len(*o) >= 2*most+100 {
		o.trim(most)
	}
}

// trim sorts the letters and drops all but the first most.
func (o *oldestLetters) trim(most int) {
	slices.SortFunc(*o, func(a, b keyedLetter) int { return strings.Compare(a.key, b.key) })
	*o = slices.Delete(*o, min(most, len(*o)), len(*o))
}

// letterKey orders dead letters by their time.
func letterKey(d flow.DeadLetter) string {
	key := d.Time.UTC().Format("2006-01-02T15:04:05.000000000Z")
	if d.Addressed != nil {
		return key + " " + d.Addressed.Receiver.Sink + " " + d.Addressed.Notification.ID
	}
	return key + "  " + flow.DeriveID("letter", d.Group, d.Topic, fmt.Sprint(d.Headers))
}
