package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// minFailures is how many attempts must fail at least before time alone ends anything, and
// before a receiver is said to fail.
const minFailures = 3

// maxActivityGap is how long nothing may have happened between two attempts, and during one,
// for their failures to count together in any case.
const maxActivityGap = time.Hour

// receiverModel is the state that one receiver must have by the documented rules. It follows from how the
// attempts ended that delivery recorded.
type receiverModel struct {
	failures     int       // since the last success
	failingSince time.Time // of the first of them
	// certainFailures counts the failures that no long gap can separate. lastActivity is when the last attempt
	// began or ended.
	certainFailures int
	lastActivity    time.Time
	// limitedSince is since when the receiver puts attempts off without having taken anything.
	limitedSince time.Time
	// What was told since the last success; expired also says that the receiver is.
	toldFailing, toldDeadLetter, expired bool
	tries                                map[string]tryCount // by notification that waits
	attemptInFlight                      uint64              // its number; 0 for none
	attemptOwner                         *process            // the process that makes it
	maybeGivenUp                         bool                // another process handled messages meanwhile, and may have given it up
	withdrawnAt                          map[string]int      // by subscription: the number of the action
	quietHolds                           map[string]quietHold
}

// quietHold is why a notification must not be tried: it came in quiet hours.
type quietHold struct {
	hours     pipeline.Quiet
	until     time.Time
	addressed flow.Addressed
}

// tryCount is what became of a notification so far.
type tryCount struct {
	firstAttempt time.Time // when the first attempt began
	failures     int
	putOffs      int // attempts that a limit put off
}

func (b receiverModel) clone() receiverModel {
	b.tries, b.withdrawnAt, b.quietHolds = maps.Clone(b.tries), maps.Clone(b.withdrawnAt), maps.Clone(b.quietHolds)
	return b
}

// recordDelivery compares what delivery told of a receiver with its model.
func (w *world) recordDelivery(h workItem, x *tx, out []flow.Message) error {
	key := h.message.Key
	before := h.l.receivers[key]
	b := before.clone()
	if b.tries == nil {
		b.tries, b.withdrawnAt, b.quietHolds = make(map[string]tryCount), make(map[string]int), make(map[string]quietHold)
	}
	b.clampTimes(w.now)
	if err := b.updateQuietHolds(w, h.message); err != nil {
		return err
	}
	if b.attemptInFlight != 0 && h.p != b.attemptOwner {
		b.maybeGivenUp = true
	}
	var told, want []pipeline.HealthEvent
	for _, m := range out {
		if m.Type != flow.TypeHealth {
			continue
		}
		e, err := flow.HealthFrom(m)
		if err != nil {
			return err
		}
		if told = append(told, e.Event); e.Receiver == nil || e.Receiver.Sink != key {
			return fmt.Errorf("delivery tells of %s about %v, not %s", e.Event, e.Receiver, key)
		}
	}
	switch {
	case h.message.Type == flow.TypeWithdraw:
		if err := decodeBody(h.message, func(x flow.Withdraw) { b.withdrawnAt[x.Subscription] = w.actionCount }); err != nil {
			return err
		}
	case h.kind == engine.FromPost && b.maybeGivenUp && len(x.effects.Writes.Under(x.place(), "", nil)) == 0:
		// The result of an attempt that was given up counts for nothing.
	case h.kind == engine.FromPost:
		want = b.attemptEnded(h.p.inbox[h.inboxIndex], w.now, w.policy, slices.Contains(told, pipeline.HealthReceiverExpired))
	}
	for _, m := range out {
		if m.Type != flow.TypeDeadLetter {
			continue
		}
		var letter flow.DeadLetter
		if err := decodeBody(m, func(l flow.DeadLetter) { letter = l }); err != nil {
			return err
		}
		if err := b.verifyDeadLetter(letter, w.now, w.policy); err != nil {
			return err
		}
		if !b.toldDeadLetter {
			b.toldDeadLetter = true
			want = append(want, pipeline.HealthDeadLetter)
		}
	}
	if !slices.Equal(told, want) {
		return fmt.Errorf("delivery tells of %q about %s, want %q", told, key, want)
	}
	w.stats.ReceiverEvents += len(told)
	h.l.receivers[key] = b
	h.l.undo.add(func() { h.l.receivers[key] = before })
	return nil
}

// updateQuietHolds records which notifications must wait for the end of quiet hours. A clock that was set back to a
// time before them ends them as well. Other digests may end in quiet hours when they are full.
func (b *receiverModel) updateQuietHolds(w *world, m flow.Message) error {
	maps.DeleteFunc(b.quietHolds, func(_ string, x quietHold) bool { return !x.until.After(w.now) || !x.hours.End(w.now).After(w.now) })
	if m.Type != flow.TypeAddressed {
		return nil
	}
	return decodeBody(m, func(a flow.Addressed) {
		for _, i := range a.Notification.Items {
			delete(b.quietHolds, i.ID) // who brings a digest back wants it now
		}
		if a.Digest == nil { // delivery sends it at once, and sends the digests that were collected before it first
			maps.DeleteFunc(b.quietHolds, func(_ string, x quietHold) bool {
				return x.addressed.Subscription == a.Subscription ||
					a.Notification.TellsOutage() && x.addressed.Notification.Client == a.Notification.Client
			})
			return
		}
		if alwaysCollects(a.Digest) {
			return
		}
		if until := a.Digest.Quiet.End(w.now); until.After(w.now) {
			b.quietHolds[a.Notification.ID] = quietHold{a.Digest.Quiet, until, a}
			w.stats.QuietNotifications++
		}
	})
}

// isHeld reports whether all that n tells came in quiet hours that have not ended.
func (b *receiverModel) isHeld(n pipeline.Notification) bool {
	if len(n.Items) == 0 {
		_, ok := b.quietHolds[n.ID]
		return ok
	}
	return !slices.ContainsFunc(n.Items, func(i pipeline.Item) bool {
		_, ok := b.quietHolds[i.ID]
		return !ok
	})
}

// clampTimes moves times that lie ahead, because the clock was set back, to now.
func (b *receiverModel) clampTimes(now time.Time) {
	if b.failingSince.After(now) {
		b.failingSince = now
	}
	if b.lastActivity.After(now) {
		b.lastActivity = now
	}
	if b.limitedSince.After(now) {
		b.limitedSince = now
	}
	for id, t := range b.tries {
		if t.firstAttempt.After(now) {
			t.firstAttempt = now
			b.tries[id] = t
		}
	}
}

// noteActivity records that an attempt begins or ends.
func (b *receiverModel) noteActivity(now time.Time) {
	if now.Sub(b.lastActivity).Abs() > maxActivityGap {
		b.certainFailures = 0
	}
	b.lastActivity = now
}

// attemptEnded records how an attempt ended, and returns what must be told. Where a long gap
// may separate failures, told says whether the receiver is held to be expired.
func (b *receiverModel) attemptEnded(p attemptResult, now time.Time, policy receiverPolicy, told bool) []pipeline.HealthEvent {
	if p.attempt.Number != b.attemptInFlight {
		return nil
	}
	b.attemptInFlight = 0
	b.noteActivity(now)
	var tell []pipeline.HealthEvent
	for _, a := range p.results {
		if a.err != nil {
			return append(tell, b.recordFailure(a, now, policy, told)...)
		}
		tell = append(tell, b.recordSuccess(a)...)
	}
	return tell
}

// recordSuccess records that a notification was delivered, and returns what must be told.
func (b *receiverModel) recordSuccess(a deliveryResult) (tell []pipeline.HealthEvent) {
	if b.toldFailing || b.expired {
		tell = append(tell, pipeline.HealthReceiverRecovered)
	}
	delete(b.tries, a.notificationID)
	b.certainFailures, b.limitedSince = 0, time.Time{}
	b.failures, b.failingSince, b.toldFailing, b.toldDeadLetter, b.expired = 0, time.Time{}, false, false, false
	return tell
}

// recordFailure records that an attempt failed with a notification, and returns what must be told.
func (b *receiverModel) recordFailure(a deliveryResult, now time.Time, policy receiverPolicy, told bool) []pipeline.HealthEvent {
	class, _ := failure.ClassOf(a.err)
	if class == failure.ClassLimited {
		return b.recordPutOff(a, now, policy, told)
	}
	if b.failures++; b.failingSince.IsZero() {
		b.failingSince = now
	}
	b.certainFailures++
	t := b.tries[a.notificationID]
	t.failures++
	b.tries[a.notificationID] = t
	switch {
	case b.expired:
	case class == failure.ClassGone || b.failures >= minFailures && now.Sub(b.failingSince) >= policy.expireAfter &&
		(told || b.certainFailures >= minFailures):
		b.expired = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverExpired}
	case b.failures >= minFailures && !b.toldFailing:
		b.toldFailing = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverFailing}
	}
	return nil
}

// recordPutOff records that a limit of the receiver put an attempt off. That is no failure.
func (b *receiverModel) recordPutOff(a deliveryResult, now time.Time, policy receiverPolicy, told bool) []pipeline.HealthEvent {
	if b.limitedSince.IsZero() {
		b.limitedSince = now
	}
	t := b.tries[a.notificationID]
	t.putOffs++
	b.tries[a.notificationID] = t
	since := b.failingSince
	if since.IsZero() {
		since = b.limitedSince
	}
	if !b.expired && told && b.failures+t.putOffs >= minFailures && now.Sub(since) >= policy.expireAfter {
		b.expired = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverExpired}
	}
	return nil
}

// verifyDeadLetter checks that a notification that was given up had a reason to be.
func (b *receiverModel) verifyDeadLetter(letter flow.DeadLetter, now time.Time, policy receiverPolicy) error {
	if letter.Addressed == nil {
		return fmt.Errorf("delivery gives up what is no notification: %s", letter.Reason)
	}
	id, sink := letter.Addressed.Notification.ID, letter.Addressed.Receiver.Sink
	t := b.tries[id]
	delete(b.tries, id)
	var refusal error
	if sink == pickySink {
		refusal = refusalOf(id)
	}
	class, _ := failure.ClassOf(refusal)
	switch {
	case b.expired:
	case refusal != nil && class == failure.ClassPermanent:
	case refusal != nil && t.failures >= minFailures:
	case t.failures+t.putOffs >= minFailures && now.Sub(t.firstAttempt) >= policy.deadAfter:
	default:
		return fmt.Errorf("%s for %s was given up after %d failures since %v", id, sink, t.failures, t.firstAttempt)
	}
	return nil
}

// handAttempt records an attempt that delivery begins in p. It must not be of what was withdrawn.
func (w *world) handAttempt(p *process, a delivery.Attempt) {
	receiver := a.Receiver.Sink
	l := p.lanes[w.transport.laneOf(receiver)]
	b := l.receivers[receiver].clone()
	if b.tries == nil {
		b.tries = make(map[string]tryCount)
	}
	for _, n := range a.Notifications {
		of := n.ID
		if len(n.Items) > 0 {
			of = n.Items[0].ID
		}
		if act, ok := b.withdrawnAt[w.subscriptionOf[of]]; ok && act < w.followedAction {
			w.deferredErr = errors.Join(w.deferredErr, fmt.Errorf("%s for %s is tried although its subscription was cancelled", n.ID, receiver))
		}
		if b.isHeld(n) {
			w.deferredErr = errors.Join(w.deferredErr, fmt.Errorf("%s for %s is tried in quiet hours", n.ID, receiver))
		}
		t := b.tries[n.ID]
		if t.firstAttempt.IsZero() {
			t.firstAttempt = w.handledAt
		}
		b.tries[n.ID] = t
	}
	if b.attemptInFlight != 0 {
		b.certainFailures = 0 // one was lost, and counts from when it first began
	}
	b.attemptInFlight, b.attemptOwner, b.maybeGivenUp = a.Number, p, false
	b.noteActivity(w.handledAt)
	before := l.receivers[receiver]
	l.receivers[receiver] = b
	if l.undo.isPending() { // else the commit that the attempt follows from is durable
		l.undo.add(func() { l.receivers[receiver] = before })
	}
}
