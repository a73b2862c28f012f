package sim

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// deadLetters returns the notifications that are dead letters of a sink; nil where none is.
func (w *world) deadLetters(sink string) map[string]bool {
	var ids map[string]bool
	dead := engine.View(w.ownedLane(sink).state, engine.Place{Group: flow.GroupDead, Key: sink})
	for l, err := range delivery.Letters(dead) {
		if err != nil {
			panic("sim: letters: " + err.Error()) // what was stored can be read
		}
		if ids == nil {
			ids = make(map[string]bool)
		}
		ids[l.Addressed.Notification.ID] = true
	}
	return ids
}

// orderKey names notifications that must arrive in order: those of a document to a receiver, except for digests,
// or those of one subscription.
type orderKey struct{ document, page, sink, subscription string }

// verifyDeliveries compares what receivers took with what they were to be told: each
// notification once, in order, by itself or in a digest, or a dead letter where they refuse it.
// What was cancelled may have arrived or not.
func (w *world) verifyDeliveries(byID map[string]*publishedNotification) error {
	r := w.receivers
	ds := digests{make(map[string]*digest), make(map[string]string)}
	taken := make(map[string]int)
	latest := make(map[orderKey]uint64)
	over := make(map[orderKey]bool) // the page was given up, by page, client, sink and subscription
	for _, g := range r.receptions {
		id := g.notification.ID
		items, replayed := []*publishedNotification{byID[id]}, 0
		switch n := byID[id]; {
		case g.notification.Type == pipeline.NotificationTypeDigest:
			d, err := w.verifyDigest(ds, byID, g.sink, g.notification)
			if err != nil {
				return fmt.Errorf("step %d: %w", g.step, err)
			}
			items, replayed = d.items, w.digestReplays[id]
		case n == nil || n.Receiver.Sink != g.sink:
			return fmt.Errorf("step %d: %s took %s, which nobody told it", g.step, g.sink, id)
		case alwaysCollects(n.Digest):
			return fmt.Errorf("step %d: %s took %s, which belongs into a digest", g.step, g.sink, id)
		case !reflect.DeepEqual(n.Notification, g.notification):
			return fmt.Errorf("step %d: %s took %s with other content: %+v, want %+v", g.step, g.sink, id, g.notification, n.Notification)
		default:
			replayed = n.replays
		}
		if taken[id]++; taken[id] > 1 {
			w.stats.Repeats++
			continue
		}
		if replayed > 0 || g.stale {
			continue // brought back out of order, or told by who had lost the lane
		}
		for _, n := range items {
			if n.replays > 0 {
				continue // and was collected again, in quiet hours
			}
			end := orderKey{n.Notification.Client, w.incarnationOf(n), g.sink, n.Subscription}
			if n.Notification.TellsOutage() {
				over[end] = n.Notification.Status == pipeline.StatusExpired
				continue
			}
			if over[end] {
				return fmt.Errorf("step %d: %s took version %d after it was told that the page was given up", g.step, g.sink, n.key.version)
			}
			all := orderKey{n.Document, w.incarnationOf(n), g.sink, ""}
			own := orderKey{n.Document, w.incarnationOf(n), g.sink, n.Subscription}
			if v := n.key.version; n.Digest == nil && v < latest[all] || v < latest[own] {
				return fmt.Errorf("step %d: %s took version %d after %d and, of the same subscription, %d", g.step, g.sink, v, latest[all], latest[own])
			}
			latest[own] = n.key.version
			if n.Digest == nil {
				latest[all] = n.key.version
			}
		}
	}
	return w.verifyFinalDeliveries(byID, ds, taken)
}

// verifyFinalDeliveries compares what became of each notification, or of the digest that tells it, with
// what must have become of it.
func (w *world) verifyFinalDeliveries(byID map[string]*publishedNotification, ds digests, taken map[string]int) error {
	dead := make(map[string]int)
	for _, lane := range w.transport.log(flow.TopicDead) {
		for _, m := range lane {
			if m.Type != flow.TypeDeadLetter {
				continue
			}
			var a flow.Addressed
			if err := decodeBody(m, func(d flow.DeadLetter) { a = *d.Addressed }); err != nil {
				return err
			}
			dead[a.Notification.ID]++
			w.stats.DeadLetters++
			if a.Notification.Type != pipeline.NotificationTypeDigest {
				continue
			}
			if _, err := w.verifyDigest(ds, byID, a.Receiver.Sink, a.Notification); err != nil {
				return err
			}
		}
	}
	kept := make(map[string]bool)
	for _, sink := range sinkNames {
		maps.Copy(kept, w.deadLetters(sink))
	}
	for item, n := range byID {
		sink, id, replayed := n.Receiver.Sink, item, n.replays
		if in := ds.digestOfItem[item]; in != "" || alwaysCollects(n.Digest) {
			id, replayed = in, w.digestReplays[in]
		}
		refused := sink == pickySink && refusalOf(id) != nil
		_, withdrawn := w.committedHistory(sink).receivers[sink].withdrawnAt[n.Subscription]
		if withdrawn {
			w.stats.WithdrawnNotifications++
		}
		switch most := 1 + w.receivers.allowedRepeats[id] + replayed; {
		case id == "" && !withdrawn:
			return fmt.Errorf("%s for %s is in no digest", item, sink)
		case id == "":
		case dead[id] > 1+replayed:
			return fmt.Errorf("%s for %s died %d times and was brought back %d times", id, sink, dead[id], replayed)
		case refused && taken[id] > 0:
			return fmt.Errorf("%s took %s, which it refuses", sink, id)
		case taken[id] > most:
			return fmt.Errorf("%s took %s %d times, want %d at most", sink, id, taken[id], most)
		case !refused && kept[id]:
			return fmt.Errorf("%s for %s is still a dead letter, brought back %d times", id, sink, replayed)
		case withdrawn:
		case refused && !kept[id]:
			return fmt.Errorf("%s refused %s, but it is no dead letter", sink, id)
		case !refused && taken[id] == 0:
			return fmt.Errorf("%s took %s 0 times, want 1; dead %d times, kept: %v", sink, id, dead[id], kept[id])
		}
	}
	return nil
}

// incarnationOf returns the life of the page that a notification is about.
func (w *world) incarnationOf(n *publishedNotification) string { return w.incarnations[n.Subscription] }
