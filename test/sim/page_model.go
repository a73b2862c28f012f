package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// pageModel is the state that one page must have by the documented rules, after the messages
// that index handled, in their order.
type pageModel struct {
	world *world
	url   string

	incarnation   string // of the page; empty for none
	keep          map[string]bool
	documents     map[string]*documentLife // that are watched now
	resting       map[string]*documentLife // that only paused subscriptions watch
	subscriptions map[string]*subscriptionSpan
	lastVersions  map[string]uint64 // by document: the last version in this life of the page
	predecessor   *subscriptionSpan // the span that the next one follows

	// What is left of subscriptions and of those who kept the page when it, or all their
	// receivers, were given up; and the receivers that were.
	expired     map[string]*subscriptionSpan
	expiredKeep map[string]bool
	unreachable map[string]bool

	openRequest    *flow.Request // that is outstanding
	requestEntry   indexEntry    // the message that led to it
	requestedAt    time.Time     // when it was made, or an earlier time that a clock was set back to
	deadline       time.Time
	answeredParts  map[int]bool
	foundReplaced  bool      // a part of the outcome found the page replaced
	lastCheck      uint64    // the last number
	mustOmitHashes bool      // the next request may not carry a hash
	failureRun     int       // failed checks in a row that count
	busyRun        int       // checks in a row that found a busy host and do not count
	toldFailing    bool      // was told
	firstFailure   time.Time // of failureRun
	// dormantSince is when all that wait for the page had been told that it fails; zero if it is not so.
	dormantSince time.Time

	lives   []*documentLife
	spans   []*subscriptionSpan
	outages []*outageNotice

	// trees are the pages that subscriptions with follow watch, by the pair of the subscription.
	// linksKnown says that the links of the page are known to somebody.
	trees      map[string]*followTree
	linksKnown bool
}

// documentLife is a document in the time from its first subscription to its last cancel.
type documentLife struct {
	id, incarnation string // page: its incarnation
	view            pipeline.View
	beganAfterCheck uint64 // the last check asked for before it began
	version         uint64 // of the version that stands; before the first, of the last earlier life
	versions        []version
	// candidate is a text that was seen timesSeen times in a row and is no version yet.
	candidate string
	timesSeen int
	// hasRested says that all its subscriptions were paused and it was not seen since: the next text is a baseline.
	hasRested    bool
	toldGone     bool // it was told that its selector matches nothing, or that its page is replaced
	replacedRun  int  // checks in a row that found its page replaced
	lastLookStep int  // at which step it was last looked at
}

type version struct {
	n            uint64
	text         renderedText
	comparedWith renderedText // what it is compared with, if it is of a feed
	language     string
	snapshot     flow.Snapshot
	tenure       int // in which its text was accepted
	// baseline says that it is compared with nothing, because the document rested before.
	baseline bool
}

// subscriptionSpan is a subscription for as long as its options stay the same: it hears version n if
// from < n <= until.
type subscriptionSpan struct {
	life        *documentLife
	incarnation string
	origin      string
	sub         pipeline.Subscription
	from, until uint64
	followed    *flow.Followed // of a page that is linked to
	// predecessor is the span of the same name that it follows, if any.
	predecessor *subscriptionSpan
	// told is when its client was told that the page fails, zero if it was not or the page answered since.
	told time.Time
	// cancelled says that what was not told before may stay untold.
	cancelled bool
	// expiredByReceivers says that it expired with its receivers, not with its page.
	expiredByReceivers bool
	// paused says that it is paused, until the time pausedUntil if that is not zero.
	paused      bool
	pausedUntil time.Time
}

// pauseIsOver reports whether r was paused until now, or until an earlier time.
func (r *subscriptionSpan) pauseIsOver(now time.Time) bool {
	return r.paused && !r.pausedUntil.IsZero() && !r.pausedUntil.After(now)
}

// outageNotice is what a client must be told at some receivers: a page fails, answers again, or was given up.
type outageNotice struct {
	status, client string
	sinks          map[string]*subscriptionSpan // by sink, the one that names it there
	at, since      time.Time
}

// expectedEffects are the effects that one message must have had, besides the content of versions.
type expectedEffects struct {
	versions  int
	withdrawn map[string]bool   // subscription and receiver
	health    []string          // event, document and sinks
	outages   int               // of which clients are told
	ended     int               // lives of the page
	follows   map[string]string // tree and page: the command
}

// expectHealth says that a health event must be published, with the sinks that it names.
func (d *expectedEffects) expectHealth(event pipeline.HealthEvent, document string, sinks ...string) {
	d.health = append(d.health, fmt.Sprintf("%s %s %q", event, document, sinks))
}

// modelOf makes the model of a page from what index committed about it. It fails where index did what
// it must not.
func (w *world) modelOf(url string) (*pageModel, error) {
	t := &pageModel{
		world: w, url: url, expired: make(map[string]*subscriptionSpan), expiredKeep: make(map[string]bool), unreachable: make(map[string]bool),
		trees: make(map[string]*followTree),
	}
	t.endIncarnation()
	for _, e := range w.committedHistory(url).entries[url] {
		if err := t.applyEntry(e); err != nil {
			return t, fmt.Errorf("%s: step %d: %s: %w", url, e.step, e.message.Type, err)
		}
	}
	return t, nil
}

// endIncarnation clears all of this incarnation: nobody watches the page any more.
func (t *pageModel) endIncarnation() {
	t.incarnation, t.openRequest, t.lastCheck, t.mustOmitHashes, t.linksKnown = "", nil, 0, false, false
	t.failureRun, t.busyRun, t.toldFailing, t.firstFailure, t.dormantSince = 0, 0, false, time.Time{}, time.Time{}
	t.keep, t.documents, t.resting = make(map[string]bool), make(map[string]*documentLife), make(map[string]*documentLife)
	t.subscriptions, t.lastVersions = make(map[string]*subscriptionSpan), make(map[string]uint64)
	if len(t.expired)+len(t.expiredKeep) == 0 {
		t.unreachable = make(map[string]bool)
	}
}

// isGone reports whether nothing is left of the page.
func (t *pageModel) isGone() bool {
	return t.incarnation == "" && len(t.expired)+len(t.expiredKeep) == 0
}

func (t *pageModel) applyEntry(e indexEntry) error {
	m := e.message
	d := &expectedEffects{withdrawn: make(map[string]bool), follows: make(map[string]string)}
	lived, listed := t.incarnation, len(t.expired)+len(t.expiredKeep) > 0
	if m.Type == flow.TypeLinks {
		if err := t.applyLinks(e, d); err != nil {
			return err
		}
	} else if m.Type == flow.TypeOutcome {
		if err := t.applyOutcome(e, d); err != nil {
			return err
		}
	} else if !t.isNoOp(m, e.now) {
		t.clampTimes(e.now)
		if m.Type == flow.TypeWake && t.openRequest != nil && t.isRequestGivenUp(e) {
			t.openRequest = nil // what is left of it
		}
		if err := t.applyCommand(m, e, d); err != nil {
			return err
		}
	}
	t.updateTrees(e.now, d)
	if lived != "" && lived != t.incarnation || lived == "" && listed && t.isGone() {
		d.ended = 1 // or nothing is left of what had expired
	}
	if err := d.compare(e); err != nil {
		return err
	}
	return t.verifyRequests(e)
}

// applyCommand carries out a command.
func (t *pageModel) applyCommand(m flow.Message, e indexEntry, d *expectedEffects) error {
	switch m.Type {
	case flow.TypeSubscribe:
		return decodeBody(m, func(c flow.SubscribeCommand) { t.subscribe(c, m.Position, d) })
	case flow.TypeCancel:
		return decodeBody(m, func(c flow.CancelCommand) { t.cancel(c, d) })
	case flow.TypeApply:
		return decodeBody(m, func(c flow.ApplyCommand) { t.applyList(c, m.Position, d) })
	case flow.TypeResume:
		return decodeBody(m, func(c flow.ResumeCommand) { t.resume(c, m.Position, e.now, d) })
	case flow.TypePause:
		return decodeBody(m, func(c flow.PauseCommand) { t.pause(c, d) })
	case flow.TypeExpire:
		return decodeBody(m, func(c flow.ExpireCommand) { t.expireReceiver(c) })
	case flow.TypeFollow:
		return decodeBody(m, func(c flow.FollowCommand) { t.applyFollow(c, m.Position, d) })
	}
	return nil
}

func decodeBody[T any](m flow.Message, f func(T)) error {
	var c T
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return err
	}
	f(c)
	return nil
}

// compare compares what index did with what it must have done.
func (d *expectedEffects) compare(e indexEntry) error {
	if len(e.snapshots) != d.versions {
		return fmt.Errorf("%d new versions were told, want %d", len(e.snapshots), d.versions)
	}
	if len(e.ended) != d.ended {
		return fmt.Errorf("%d lives of the page ended, want %d", len(e.ended), d.ended)
	}
	if e.outages != d.outages {
		return fmt.Errorf("clients are told of %d outages, want %d", e.outages, d.outages)
	}
	for _, w := range e.withdrawn {
		name := w.Subscription + " " + w.Receiver.Sink
		if !d.withdrawn[name] {
			return fmt.Errorf("subscription %s was withdrawn, but not cancelled", name)
		}
		delete(d.withdrawn, name)
	}
	for name := range d.withdrawn {
		return fmt.Errorf("subscription %s was cancelled, but not withdrawn", name)
	}
	if !maps.Equal(e.follows, d.follows) {
		return fmt.Errorf("commands to linked pages: %v, want %v", e.follows, d.follows)
	}
	var told []string
	for _, h := range e.health {
		told = append(told, fmt.Sprintf("%s %s %q", h.Event, h.Document, h.Sinks))
	}
	if fmt.Sprint(told) != fmt.Sprint(d.health) {
		return fmt.Errorf("health events %q were told, want %q", told, d.health)
	}
	return nil
}
