package sim

import (
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sinks"
)

// Sinks that subscriptions name. steady always takes what it is offered; flaky fails now
// and then, also after it took it; down is away for hours; picky refuses some; leaver says
// now and then that it does not exist any more.
var sinkNames = []string{"steady", "flaky", "down", picky, "leaver"}

const picky = "picky"

// receivers are the other side of delivery. They outlive the process.
type receivers struct {
	down, left bool
	got        []reception
	// unconfirmed are notifications that were taken, while delivery does not know it yet;
	// excused is how many repeats of each are nobody's fault.
	unconfirmed map[string]bool
	excused     map[string]int
}

// reception is a notification that a receiver took.
type reception struct {
	sink         string
	notification pipeline.Notification
	step         int
}

func newReceivers() *receivers {
	return &receivers{unconfirmed: make(map[string]bool), excused: make(map[string]int)}
}

// confirmed is called when delivery has stored how an attempt ended.
func (r *receivers) confirmed(id string) { delete(r.unconfirmed, id) }

// crashed excuses one repeat of all that was taken and not stored.
func (r *receivers) crashed() {
	for id := range r.unconfirmed {
		r.excused[id]++
	}
	clear(r.unconfirmed)
}

// refuses reports how picky treats a notification: always the same way.
func refuses(id string) error {
	h := fnv.New32a()
	h.Write([]byte(id))
	switch h.Sum32() % 6 {
	case 0:
		return pipeline.Permanent(errors.New("never"))
	case 1:
		return pipeline.Refused(errors.New("not this one"))
	}
	return nil
}

// stepAttempt ends one attempt of delivery's pool.
func (w *world) stepAttempt() {
	i := w.rng.IntN(len(w.attempts))
	a := w.attempts[i]
	w.attempts = slices.Delete(w.attempts, i, i+1)
	err := w.offer(a)
	w.tracef("delivery: %s at %s: %v", a.Notification.ID[:6], a.Receiver.Sink, err)
	w.inbox = append(w.inbox, posted{a.Result(err), a.Notification.ID, a.Number, err})
	if w.cfg.Stormy && w.chance(4) {
		w.crash("just after a receiver was told")
	}
}

// offer hands a notification to its receiver.
func (w *world) offer(a sinks.Attempt) error {
	r, id := w.receivers, a.Notification.ID
	take := func() {
		r.got = append(r.got, reception{a.Receiver.Sink, a.Notification, w.steps})
	}
	switch a.Receiver.Sink {
	case "flaky":
		if w.chance(4) {
			return errors.New("not now")
		}
		if w.chance(10) {
			take()
			r.excused[id]++
			return pipeline.Ambiguous(errors.New("connection broke"))
		}
	case "down":
		if r.down && !w.calm {
			return pipeline.RetryAfter(errors.New("closed"), 10*time.Second)
		}
	case "leaver":
		if r.left && !w.calm {
			return pipeline.Gone(errors.New("moved away"))
		}
	case picky:
		if err := refuses(id); err != nil {
			return err
		}
	}
	take()
	r.unconfirmed[id] = true
	return nil
}
