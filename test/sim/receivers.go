package sim

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Sinks that subscriptions name. steady always takes what it is offered; flaky fails now
// and then, also after it took it, or puts off what it is offered; down is away for hours; picky refuses some; leaver
// says now and then that it does not exist any more.
var sinkNames = []string{"steady", "flaky", "down", pickySink, "leaver"}

const pickySink = "picky"

// batchSink is a sink that takes so many notifications in one attempt. It is never called:
// the world offers them to the receivers.
type batchSink int

func (batchSink) Deliver(context.Context, pipeline.Notification) error { panic("not called") }
func (b batchSink) Batch() (notifications, atOnce int)                 { return int(b), 1 }

// receivers are the other side of delivery. They outlive the process.
type receivers struct {
	down, gone bool
	receptions []reception
	// unconfirmed are receptions that delivery does not know of yet. allowedRepeats is how many
	// repeats of each notification are nobody's fault.
	unconfirmed    map[int]bool
	allowedRepeats map[string]int
}

// reception is a notification that a receiver took.
type reception struct {
	sink         string
	notification pipeline.Notification
	step         int
	// stale ones are of a process that had lost the lane when it made the attempt.
	stale bool
}

func newReceivers() *receivers {
	return &receivers{unconfirmed: make(map[int]bool), allowedRepeats: make(map[string]int)}
}

// confirm records that delivery has stored how an attempt ended.
func (r *receivers) confirm(x attemptResult) {
	for _, a := range x.results {
		delete(r.unconfirmed, a.reception)
	}
}

// allowRepeats allows a repeat of what an attempt delivered whose end delivery will not hear of.
func (r *receivers) allowRepeats(x attemptResult) {
	for _, a := range x.results {
		r.allowRepeat(a.reception)
	}
}

// allowRepeat allows one repeat of a reception that delivery will not hear of any more.
func (r *receivers) allowRepeat(taken int) {
	if r.unconfirmed[taken] {
		r.allowedRepeats[r.receptions[taken].notification.ID]++
		delete(r.unconfirmed, taken)
	}
}

// allowRepeatsAfterCrash allows one repeat of all that was taken and not stored.
func (r *receivers) allowRepeatsAfterCrash() {
	for taken := range r.unconfirmed {
		r.allowRepeat(taken)
	}
}

// refusalOf returns how the sink picky refuses a notification, always the same way; nil if it does not.
func refusalOf(id string) error {
	h := fnv.New32a()
	h.Write([]byte(id))
	switch h.Sum32() % 6 {
	case 0:
		return failure.Permanent(errors.New("never"))
	case 1:
		return failure.Refused(errors.New("not this one"))
	}
	return nil
}

// crowdedRemainder is the remainder by four of the seeds of crowded runs.
const crowdedRemainder = 3

// isCrowded reports whether the run has few receivers, which mostly let attempts wait: notifications
// pile up then and are offered several at once.
func (w *world) isCrowded() bool { return w.cfg.Seed%4 == crowdedRemainder }

// receiversStall reports whether the receivers let attempts wait for now.
func (w *world) receiversStall() bool { return w.isCrowded() && !w.faultsOver && w.rng.IntN(4) > 0 }

// stepAttempt ends one attempt of delivery's pool in p. Where p has lost the lane of its receiver since it
// began, nobody takes note of it.
func (w *world) stepAttempt(p *process) {
	i := w.rng.IntN(len(p.attempts))
	a := p.attempts[i]
	p.attempts = slices.Delete(p.attempts, i, i+1)
	x := attemptResult{attempt: a.Attempt}
	var errs []error
	for _, n := range a.Notifications {
		x.results = append(x.results, w.deliver(a, n))
		errs = append(errs, x.results[len(errs)].err)
		if errs[len(errs)-1] != nil || w.chance(10) { // or its time is over
			break
		}
	}
	w.stats.BatchedNotifications += len(errs) - 1
	x.message = a.Result(errs...)
	if a.stale || p.lanes[w.transport.laneOf(a.Receiver.Sink)] == nil {
		p.dropResult(x)
		return
	}
	p.inbox = append(p.inbox, x)
	if w.cfg.OnlyPowerCuts && w.chance(4) {
		w.crash(p, "just after a receiver was told")
	}
}

// deliver offers a notification of a to its receiver.
func (w *world) deliver(a attempt, n pipeline.Notification) deliveryResult {
	taken := len(w.receivers.receptions)
	err := w.offer(a, n)
	w.tracef("delivery: %s at %s: %v", n.ID[:6], a.Receiver.Sink, err)
	if err != nil {
		return deliveryResult{n.ID, err, -1}
	}
	w.receivers.unconfirmed[taken] = true
	if a.stale {
		w.stats.StaleDeliveries++
		w.receivers.allowRepeat(taken)
	}
	return deliveryResult{n.ID, nil, taken}
}

// offer hands a notification to its receiver.
func (w *world) offer(a attempt, n pipeline.Notification) error {
	r, id := w.receivers, n.ID
	take := func() {
		r.receptions = append(r.receptions, reception{a.Receiver.Sink, n, w.steps, a.stale})
	}
	switch a.Receiver.Sink {
	case "flaky":
		if w.chance(4) {
			return errors.New("not now")
		}
		if w.chance(10) {
			take()
			r.allowedRepeats[id]++
			return failure.Ambiguous(errors.New("connection broke"))
		}
		if w.chance(6) {
			return failure.Limited(errors.New("too many"), 20*time.Second)
		}
	case "down":
		if r.down && !w.faultsOver {
			return failure.RetryAfter(errors.New("closed"), 10*time.Second)
		}
	case "leaver":
		if r.gone && !w.faultsOver {
			return failure.Gone(errors.New("moved away"))
		}
	case pickySink:
		if err := refusalOf(id); err != nil {
			return err
		}
	}
	take()
	return nil
}
