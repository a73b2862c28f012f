package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// truth is what must have become of one page, by the documented rules, from the messages
// in the order in which index handled them.
type truth struct {
	w   *world
	url string

	incarnation string // of the page; empty for none
	keep        map[string]bool
	docs        map[string]*life // that are watched now
	resting     map[string]*life // that only paused subscriptions watch
	subs        map[string]*record
	last        map[string]uint64 // by document: the last version in this life of the page
	stopped     *record           // what the next record follows

	// What is left of subscriptions and of those who kept the page when it, or all their
	// receivers, were given up; and the receivers that were.
	expired     map[string]*record
	expiredKeep map[string]bool
	unreachable map[string]bool

	request  *flow.Request // that is outstanding
	asked    entry         // when it was made
	askedAt  time.Time     // and at what time, as far as clocks that were set back let it be
	deadline time.Time
	parts    map[int]bool
	wall     bool   // a part of it found the page replaced
	check    uint64 // the last number
	bare     bool   // the next request may not carry a hash
	failures int    // counted ones in a row
	busy     int    // not counted ones in a row
	failing  bool   // was told

	lives    []*life
	records  []*record
	timeouts []*timeout

	// trees are the pages that subscriptions with follow watch, by the pair of the subscription.
	// linksKnown says that the links of the page are known to somebody.
	trees      map[string]*hierarchy
	linksKnown bool
}

// life is a document from its first subscription to its last cancel.
type life struct {
	id, page string // page: its incarnation
	view     pipeline.View
	since    uint64 // the last check asked for before it began
	n        uint64 // of the version that stands; before the first, of the last earlier life
	versions []version
	// candidate is a text that was seen stood times in a row and is no version yet.
	candidate string
	stood     int
	// rested says that it rested and was not seen since: the next text is a baseline.
	rested bool
	gone   bool // it was told that its selector matches nothing, or that its page is replaced
	walls  int  // checks in a row that found its page replaced
	looked int  // at which step it was last looked at
}

type version struct {
	n        uint64
	text     rendering
	with     rendering // what it is compared with, if it is of a feed
	language string
	snapshot flow.Snapshot
	tenure   int // in which its text was accepted
	// baseline says that it is compared with nothing, because the document rested before.
	baseline bool
}

// record is a subscription with the same options throughout: it hears version n if
// from < n <= until.
type record struct {
	life        *life
	incarnation string
	origin      string
	sub         pipeline.Subscription
	from, until uint64
	followed    *flow.Followed // of a page that is linked to
	// before is the record of the pair that it follows, if any.
	before *record
	// cancelled says that what was not told before may stay untold.
	cancelled bool
	// receiver says that it expired with its receivers, not with its page.
	receiver bool
	// paused says that it is paused, until the time pausedUntil if that is not zero.
	paused      bool
	pausedUntil time.Time
}

// over reports whether r was paused until now, or until an earlier time.
func (r *record) over(now time.Time) bool {
	return r.paused && !r.pausedUntil.IsZero() && !r.pausedUntil.After(now)
}

// timeout is that a client must be told at some receivers that a page was given up.
type timeout struct {
	page, client string             // page: its incarnation
	sinks        map[string]*record // by sink, the one that names it there
	at           time.Time
}

// deeds is what one message must have led to, beside what is told of versions.
type deeds struct {
	versions  int
	withdrawn map[string]bool // subscription and receiver
	health    []string        // event, document and sinks
	expired   bool
	ended     int               // lives of the page
	follows   map[string]string // tree and page: the command
}

// tell says that a health event must be published, with the sinks that it names.
func (d *deeds) tell(event pipeline.HealthEvent, document string, sinks ...string) {
	d.health = append(d.health, fmt.Sprintf("%s %s %q", event, document, sinks))
}

// truthOf goes through what index committed about a page. It fails where index did what
// it must not.
func (w *world) truthOf(url string) (*truth, error) {
	t := &truth{
		w: w, url: url, expired: make(map[string]*record), expiredKeep: make(map[string]bool), unreachable: make(map[string]bool),
		trees: make(map[string]*hierarchy),
	}
	t.end()
	for _, e := range w.stands(url).history[url] {
		if err := t.entry(e); err != nil {
			return t, fmt.Errorf("%s: step %d: %s: %w", url, e.step, e.message.Type, err)
		}
	}
	return t, nil
}

// end forgets all of this life: nobody watches the page any more.
func (t *truth) end() {
	t.incarnation, t.request, t.check, t.bare, t.linksKnown = "", nil, 0, false, false
	t.failures, t.busy, t.failing = 0, 0, false
	t.keep, t.docs, t.resting = make(map[string]bool), make(map[string]*life), make(map[string]*life)
	t.subs, t.last = make(map[string]*record), make(map[string]uint64)
	if len(t.expired)+len(t.expiredKeep) == 0 {
		t.unreachable = make(map[string]bool)
	}
}

// over reports whether nothing is left of the page.
func (t *truth) over() bool { return t.incarnation == "" && len(t.expired)+len(t.expiredKeep) == 0 }

func (t *truth) entry(e entry) error {
	m := e.message
	d := &deeds{withdrawn: make(map[string]bool), follows: make(map[string]string)}
	lived, listed := t.incarnation, len(t.expired)+len(t.expiredKeep) > 0
	if m.Type == flow.TypeLinks {
		if err := t.reported(e, d); err != nil {
			return err
		}
	} else if m.Type == flow.TypeOutcome {
		if err := t.outcome(e, d); err != nil {
			return err
		}
	} else if !t.idle(m, e.now) {
		t.clamp(e.now)
		if m.Type == flow.TypeWake && t.request != nil && t.givenUp(e) {
			t.request = nil // what is left of it
		}
		if err := t.command(m, e, d); err != nil {
			return err
		}
	}
	t.grows(e.now, d)
	if lived != "" && lived != t.incarnation || lived == "" && listed && t.over() {
		d.ended = 1 // or nothing is left of what had expired
	}
	if err := d.compare(e); err != nil {
		return err
	}
	return t.requests(e)
}

// command carries out a command.
func (t *truth) command(m flow.Message, e entry, d *deeds) error {
	switch m.Type {
	case flow.TypeSubscribe:
		return read(m, func(c flow.SubscribeCommand) { t.subscribe(c, m.Position, d) })
	case flow.TypeCancel:
		return read(m, func(c flow.CancelCommand) { t.cancel(c, d) })
	case flow.TypeApply:
		return read(m, func(c flow.ApplyCommand) { t.apply(c, m.Position, d) })
	case flow.TypeResume:
		return read(m, func(c flow.ResumeCommand) { t.resume(c, m.Position, e.now, d) })
	case flow.TypePause:
		return read(m, func(c flow.PauseCommand) { t.pause(c, d) })
	case flow.TypeExpire:
		return read(m, func(c flow.ExpireCommand) { t.expireReceiver(c) })
	case flow.TypeFollow:
		return read(m, func(c flow.FollowCommand) { t.followed(c, m.Position, d) })
	}
	return nil
}

func read[T any](m flow.Message, f func(T)) error {
	var c T
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return err
	}
	f(c)
	return nil
}

// compare holds what index did against what it must have done.
func (d *deeds) compare(e entry) error {
	if len(e.snapshots) != d.versions {
		return fmt.Errorf("%d new versions were told, want %d", len(e.snapshots), d.versions)
	}
	if len(e.ended) != d.ended {
		return fmt.Errorf("%d lives of the page ended, want %d", len(e.ended), d.ended)
	}
	for _, x := range e.ended {
		if (x.Expiry != nil) != d.expired {
			return fmt.Errorf("the page was given up: %v, want %v", x.Expiry != nil, d.expired)
		}
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
