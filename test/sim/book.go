package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// minFailures is how many attempts must fail at least before time alone ends anything, and
// before a receiver is said to fail.
const minFailures = 3

// standstill is how long nothing may have happened between two attempts, and during one,
// for their failures to count together in any case.
const standstill = time.Hour

// book is what must be the state of one receiver, by the documented rules, from how the
// attempts ended that delivery took note of.
type book struct {
	failures int       // since the last success
	since    time.Time // of the first of them
	// sure counts those of them that no standstill can separate, seen is when the last one
	// began or ended.
	sure int
	seen time.Time
	// limited is since when the receiver puts attempts off without having taken anything.
	limited time.Time
	// What was told since the last success; expired also says that the receiver is.
	failing, dead, expired bool
	tried                  map[string]try // by notification that waits
	attempt                uint64         // the one in flight
	by                     *process       // which makes it
	elsewhere              bool           // another process handled messages meanwhile, and may have given it up
	withdrawn              map[string]int // by subscription: as which act
	quiet                  map[string]hush
}

// hush is why a notification must not be tried: it came in quiet hours.
type hush struct {
	hours pipeline.Quiet
	until time.Time
	of    flow.Addressed
}

// try is what became of a notification so far.
type try struct {
	first    time.Time // when the first attempt began
	failures int
	putOff   int // attempts that a limit put off
}

func (b book) clone() book {
	b.tried, b.withdrawn, b.quiet = maps.Clone(b.tried), maps.Clone(b.withdrawn), maps.Clone(b.quiet)
	return b
}

// recordDelivery holds what delivery told of a receiver against its book.
func (w *world) recordDelivery(h handleable, x *tx, out []flow.Message) error {
	key := h.message.Key
	before := h.l.books[key]
	b := before.clone()
	if b.tried == nil {
		b.tried, b.withdrawn, b.quiet = make(map[string]try), make(map[string]int), make(map[string]hush)
	}
	b.clamp(w.now)
	if err := b.hushed(w, h.message); err != nil {
		return err
	}
	if b.attempt != 0 && h.p != b.by {
		b.elsewhere = true
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
		if err := read(h.message, func(x flow.Withdraw) { b.withdrawn[x.Subscription] = w.act }); err != nil {
			return err
		}
	case h.kind == engine.FromPost && b.elsewhere && len(x.wrote()) == 0:
		// The result of an attempt that was given up counts for nothing.
	case h.kind == engine.FromPost:
		want = b.attempted(h.p.inbox[h.posted], w.now, w.policy, slices.Contains(told, pipeline.HealthReceiverExpired))
	}
	for _, m := range out {
		if m.Type != flow.TypeDeadLetter {
			continue
		}
		var letter flow.DeadLetter
		if err := read(m, func(l flow.DeadLetter) { letter = l }); err != nil {
			return err
		}
		if err := b.givenUp(letter, w.now, w.policy); err != nil {
			return err
		}
		if !b.dead {
			b.dead = true
			want = append(want, pipeline.HealthDeadLetter)
		}
	}
	if !slices.Equal(told, want) {
		return fmt.Errorf("delivery tells of %q about %s, want %q", told, key, want)
	}
	w.stats.Health += len(told)
	h.l.books[key] = b
	h.l.undo.add(func() { h.l.books[key] = before })
	return nil
}

// hushed notes which notifications must wait for the end of quiet hours. A clock that was set back to a
// time before them ends them as well. Other digests may end in quiet hours when they are full.
func (b *book) hushed(w *world, m flow.Message) error {
	maps.DeleteFunc(b.quiet, func(_ string, x hush) bool { return !x.until.After(w.now) || !x.hours.End(w.now).After(w.now) })
	if m.Type != flow.TypeNotification {
		return nil
	}
	return read(m, func(a flow.Addressed) {
		for _, i := range a.Notification.Items {
			delete(b.quiet, i.ID) // who brings a digest back wants it now
		}
		if a.Digest == nil { // delivery sends it at once, and sends the digests that were collected before it first
			maps.DeleteFunc(b.quiet, func(_ string, x hush) bool {
				return x.of.Subscription == a.Subscription ||
					a.Notification.Status == pipeline.StatusTimeout && x.of.Notification.Client == a.Notification.Client
			})
			return
		}
		if always(a.Digest) {
			return
		}
		if until := a.Digest.Quiet.End(w.now); until.After(w.now) {
			b.quiet[a.Notification.ID] = hush{a.Digest.Quiet, until, a}
			w.stats.Hushed++
		}
	})
}

// silent reports whether all that n tells came in quiet hours that go on.
func (b *book) silent(n pipeline.Notification) bool {
	if len(n.Items) == 0 {
		_, ok := b.quiet[n.ID]
		return ok
	}
	return !slices.ContainsFunc(n.Items, func(i pipeline.Item) bool {
		_, ok := b.quiet[i.ID]
		return !ok
	})
}

// clamp takes back times that a clock set back has made impossible.
func (b *book) clamp(now time.Time) {
	if b.since.After(now) {
		b.since = now
	}
	if b.seen.After(now) {
		b.seen = now
	}
	if b.limited.After(now) {
		b.limited = now
	}
	for id, t := range b.tried {
		if t.first.After(now) {
			t.first = now
			b.tried[id] = t
		}
	}
}

// moves notes that an attempt begins or ends.
func (b *book) moves(now time.Time) {
	if now.Sub(b.seen).Abs() > standstill {
		b.sure = 0
	}
	b.seen = now
}

// attempted takes how an attempt ended, and returns what must be told. Where a standstill
// may separate failures, told says whether the receiver is held to be expired.
func (b *book) attempted(p posted, now time.Time, policy policy, told bool) []pipeline.HealthEvent {
	if p.of.Number != b.attempt {
		return nil
	}
	b.attempt = 0
	b.moves(now)
	var tell []pipeline.HealthEvent
	for _, a := range p.answers {
		if a.err != nil {
			return append(tell, b.failed(a, now, policy, told)...)
		}
		tell = append(tell, b.delivered(a)...)
	}
	return tell
}

// delivered takes that a notification was delivered.
func (b *book) delivered(a answer) (tell []pipeline.HealthEvent) {
	if b.failing || b.expired {
		tell = append(tell, pipeline.HealthReceiverRecovered)
	}
	delete(b.tried, a.notification)
	b.sure, b.limited = 0, time.Time{}
	b.failures, b.since, b.failing, b.dead, b.expired = 0, time.Time{}, false, false, false
	return tell
}

// failed takes that an attempt failed with a notification.
func (b *book) failed(a answer, now time.Time, policy policy, told bool) []pipeline.HealthEvent {
	class, _ := failure.ClassOf(a.err)
	if class == failure.ClassLimited {
		return b.putOff(a, now, policy, told)
	}
	if b.failures++; b.since.IsZero() {
		b.since = now
	}
	b.sure++
	t := b.tried[a.notification]
	t.failures++
	b.tried[a.notification] = t
	switch {
	case b.expired:
	case class == failure.ClassGone || b.failures >= minFailures && now.Sub(b.since) >= policy.expireAfter && (told || b.sure >= minFailures):
		b.expired = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverExpired}
	case b.failures >= minFailures && !b.failing:
		b.failing = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverFailing}
	}
	return nil
}

// putOff takes that a limit of the receiver put an attempt off, which is no failure.
func (b *book) putOff(a answer, now time.Time, policy policy, told bool) []pipeline.HealthEvent {
	if b.limited.IsZero() {
		b.limited = now
	}
	t := b.tried[a.notification]
	t.putOff++
	b.tried[a.notification] = t
	since := b.since
	if since.IsZero() {
		since = b.limited
	}
	if !b.expired && told && b.failures+t.putOff >= minFailures && now.Sub(since) >= policy.expireAfter {
		b.expired = true
		return []pipeline.HealthEvent{pipeline.HealthReceiverExpired}
	}
	return nil
}

// givenUp takes that a notification was given up, which must have a reason.
func (b *book) givenUp(letter flow.DeadLetter, now time.Time, policy policy) error {
	if letter.Addressed == nil {
		return fmt.Errorf("delivery gives up what is no notification: %s", letter.Reason)
	}
	id, sink := letter.Addressed.Notification.ID, letter.Addressed.Receiver.Sink
	t := b.tried[id]
	delete(b.tried, id)
	var refusal error
	if sink == picky {
		refusal = refuses(id)
	}
	class, _ := failure.ClassOf(refusal)
	switch {
	case b.expired:
	case refusal != nil && class == failure.ClassPermanent:
	case refusal != nil && t.failures >= minFailures:
	case t.failures+t.putOff >= minFailures && now.Sub(t.first) >= policy.deadAfter:
	default:
		return fmt.Errorf("%s for %s was given up after %d failures since %v", id, sink, t.failures, t.first)
	}
	return nil
}

// hand takes an attempt that delivery makes in p. It makes none of what was withdrawn.
func (w *world) hand(p *process, a sinks.Attempt) {
	receiver := a.Receiver.Sink
	l := p.lanes[w.t.lane(receiver)]
	b := l.books[receiver].clone()
	if b.tried == nil {
		b.tried = make(map[string]try)
	}
	for _, n := range a.Notifications {
		of := n.ID
		if len(n.Items) > 0 {
			of = n.Items[0].ID
		}
		if act, ok := b.withdrawn[w.subscriptionOf[of]]; ok && act < w.followed {
			w.broken = errors.Join(w.broken, fmt.Errorf("%s for %s is tried although its subscription was cancelled", n.ID, receiver))
		}
		if b.silent(n) {
			w.broken = errors.Join(w.broken, fmt.Errorf("%s for %s is tried in quiet hours", n.ID, receiver))
		}
		t := b.tried[n.ID]
		if t.first.IsZero() {
			t.first = w.handled
		}
		b.tried[n.ID] = t
	}
	if b.attempt != 0 {
		b.sure = 0 // one was lost, and counts from when it first began
	}
	b.attempt, b.by, b.elsewhere = a.Number, p, false
	b.moves(w.handled)
	before := l.books[receiver]
	l.books[receiver] = b
	if l.undo.some() { // else the commit that the attempt follows from is durable
		l.undo.add(func() { l.books[receiver] = before })
	}
}
