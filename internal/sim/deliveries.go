package sim

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sinks"
)

// letters returns the notifications that are dead letters of a sink; nil where none is.
func (w *world) letters(sink string) map[string]bool {
	var ids map[string]bool
	x := w.t.begin(w.holder(sink), consumerID{pipeline.GroupDead, pipeline.TopicDead}, sink)
	for l, err := range sinks.Letters(x.State(sink)) {
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

// line is what must arrive in order: what one subscription's document tells a receiver.
type line struct{ document, page, sink string }

// verifyDeliveries holds what receivers took against what they were to be told: each
// notification once, in order, or a dead letter where they refuse it. What was cancelled
// may have arrived or not.
func (w *world) verifyDeliveries(byID map[string]*told) error {
	r := w.receivers
	taken := make(map[string]int)
	latest := make(map[line]uint64)
	over := make(map[line]bool) // the page was given up, by page, client and sink
	for _, g := range r.got {
		n := byID[g.notification.ID]
		if n == nil || n.Receiver.Sink != g.sink {
			return fmt.Errorf("step %d: %s took %s, which nobody told it", g.step, g.sink, g.notification.ID)
		}
		if !reflect.DeepEqual(n.Notification, g.notification) {
			return fmt.Errorf("step %d: %s took %s with other content: %+v, want %+v", g.step, g.sink, g.notification.ID, g.notification, n.Notification)
		}
		if taken[n.Notification.ID]++; taken[n.Notification.ID] > 1 {
			w.stats.Repeats++
			continue
		}
		if n.replayed > 0 || g.stale {
			continue // brought back out of order, or told by who had lost the lane
		}
		end := line{n.Notification.Client, w.incarnationOf(n), g.sink}
		if n.Notification.Status == pipeline.StatusTimeout {
			over[end] = true
			continue
		}
		if over[end] {
			return fmt.Errorf("step %d: %s took version %d after it was told that the page was given up", g.step, g.sink, n.about.version)
		}
		l := line{n.Document, w.incarnationOf(n), g.sink}
		if n.about.version < latest[l] {
			return fmt.Errorf("step %d: %s took version %d after %d", g.step, g.sink, n.about.version, latest[l])
		}
		latest[l] = n.about.version
	}
	return w.verifyEnds(byID, taken)
}

// verifyEnds holds what became of each notification against what must have.
func (w *world) verifyEnds(byID map[string]*told, taken map[string]int) error {
	dead := make(map[string]int)
	for _, lane := range w.t.log(pipeline.TopicDead) {
		for _, m := range lane {
			if m.Type != pipeline.TypeDeadLetter {
				continue
			}
			if err := read(m, func(d pipeline.DeadLetter) { dead[d.Addressed.Notification.ID]++ }); err != nil {
				return err
			}
			w.stats.Dead++
		}
	}
	kept := make(map[string]bool)
	for _, sink := range sinkNames {
		maps.Copy(kept, w.letters(sink))
	}
	for id, n := range byID {
		sink := n.Receiver.Sink
		refused := sink == picky && refuses(id) != nil
		_, withdrawn := w.stands(sink).books[sink].withdrawn[n.Subscription]
		if withdrawn {
			w.stats.Withdrawn++
		}
		switch most := 1 + w.receivers.excused[id] + n.replayed; {
		case dead[id] > 1+n.replayed:
			return fmt.Errorf("%s for %s died %d times and was brought back %d times", id, sink, dead[id], n.replayed)
		case refused && taken[id] > 0:
			return fmt.Errorf("%s took %s, which it refuses", sink, id)
		case taken[id] > most:
			return fmt.Errorf("%s took %s %d times, want %d at most", sink, id, taken[id], most)
		case !refused && kept[id]:
			return fmt.Errorf("%s for %s is still a dead letter, brought back %d times", id, sink, n.replayed)
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
func (w *world) incarnationOf(n *told) string { return w.incarnations[n.Subscription] }
