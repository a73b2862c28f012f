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
// and then, also after it took it, or puts off what it is offered; down is away for hours; picky refuses some; leaver says
// now and then that it does not exist any more.
var sinkNames = []string{"steady", "flaky", "down", picky, "leaver"}

const picky = "picky"

// inBatches is a sink that takes so many notifications in one attempt. It is never called:
// the world offers them to the receivers.
type inBatches int

func (inBatches) Deliver(context.Context, pipeline.Notification) error { panic("not called") }
func (b inBatches) Batch() (notifications, atOnce int)                 { return int(b), 1 }

// receivers are the other side of delivery. They outlive the process.
type receivers struct {
	down, left bool
	got        []reception
	// unconfirmed are receptions that delivery does not know of yet; excused is how many
	// repeats of each notification are nobody's fault.
	unconfirmed map[int]bool
	excused     map[string]int
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
	return &receivers{unconfirmed: make(map[int]bool), excused: make(map[string]int)}
}

// confirmed is called when delivery has stored how an attempt ended.
func (r *receivers) confirmed(x posted) {
	for _, a := range x.answers {
		delete(r.unconfirmed, a.taken)
	}
}

// unheard is called when delivery will not hear how an attempt ended.
func (r *receivers) unheard(x posted) {
	for _, a := range x.answers {
		r.excuse(a.taken)
	}
}

// excuse excuses one repeat of a reception of which delivery will not hear any more.
func (r *receivers) excuse(taken int) {
	if r.unconfirmed[taken] {
		r.excused[r.got[taken].notification.ID]++
		delete(r.unconfirmed, taken)
	}
}

// crashed excuses one repeat of all that was taken and not stored.
func (r *receivers) crashed() {
	for taken := range r.unconfirmed {
		r.excuse(taken)
	}
}

// refuses reports how picky treats a notification: always the same way.
func refuses(id string) error {
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

// crowdedSeed is the remainder by four of the seeds of crowded runs.
const crowdedSeed = 3

// crowded reports whether the run has few receivers, which mostly let attempts wait: notifications
// pile up then and are offered several at once.
func (w *world) crowded() bool { return w.cfg.Seed%4 == crowdedSeed }

// idles reports whether the receivers let attempts wait for now.
func (w *world) idles() bool { return w.crowded() && !w.calm && w.rng.IntN(4) > 0 }

// stepAttempt ends one attempt of delivery's pool in p. Where the lane of its receiver is
// not that of p any more, nobody takes note of it.
func (w *world) stepAttempt(p *process) {
	i := w.rng.IntN(len(p.attempts))
	a := p.attempts[i]
	p.attempts = slices.Delete(p.attempts, i, i+1)
	x := posted{of: a.Attempt}
	var errs []error
	for _, n := range a.Notifications {
		x.answers = append(x.answers, w.answer(a, n))
		errs = append(errs, x.answers[len(errs)].err)
		if errs[len(errs)-1] != nil || w.chance(10) { // or its time is over
			break
		}
	}
	w.stats.Batched += len(errs) - 1
	x.message = a.Result(errs...)
	if p.lanes[w.t.lane(a.Receiver.Sink)] == nil {
		p.forget(x)
		return
	}
	p.inbox = append(p.inbox, x)
	if w.cfg.Stormy && w.chance(4) {
		w.crash(p, "just after a receiver was told")
	}
}

// answer offers a notification of a to its receiver.
func (w *world) answer(a attempt, n pipeline.Notification) answer {
	taken := len(w.receivers.got)
	err := w.offer(a, n)
	w.tracef("delivery: %s at %s: %v", n.ID[:6], a.Receiver.Sink, err)
	if err != nil {
		return answer{n.ID, err, -1}
	}
	w.receivers.unconfirmed[taken] = true
	if a.stale {
		w.stats.Stale++
		w.receivers.excuse(taken)
	}
	return answer{n.ID, nil, taken}
}

// offer hands a notification to its receiver.
func (w *world) offer(a attempt, n pipeline.Notification) error {
	r, id := w.receivers, n.ID
	take := func() {
		r.got = append(r.got, reception{a.Receiver.Sink, n, w.steps, a.stale})
	}
	switch a.Receiver.Sink {
	case "flaky":
		if w.chance(4) {
			return errors.New("not now")
		}
		if w.chance(10) {
			take()
			r.excused[id]++
			return failure.Ambiguous(errors.New("connection broke"))
		}
		if w.chance(6) {
			return failure.Limited(errors.New("too many"), 20*time.Second)
		}
	case "down":
		if r.down && !w.calm {
			return failure.RetryAfter(errors.New("closed"), 10*time.Second)
		}
	case "leaver":
		if r.left && !w.calm {
			return failure.Gone(errors.New("moved away"))
		}
	case picky:
		if err := refuses(id); err != nil {
			return err
		}
	}
	take()
	return nil
}
