package index

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Event is one thing that happened to a page, with all that Apply needs to know.
type Event struct {
	// URL is the page's canonical URL.
	URL string
	// Now is when it is handled.
	Now time.Time
	// Position is where a command or an outcome stands in its log; it names incarnations
	// and the store in which versions are made.
	Position string
	Rules    Rules
	// Budget is how many more checks of the page this run may accept; nil means any number.
	// With none left no request is made.
	Budget *int
	// AtOnce makes the page due whatever its schedule says, until a check is complete.
	AtOnce bool
	// Lost says that the process that asked for the outstanding check is gone, and with it
	// what it had to fetch.
	Lost bool
	// Nonce is that of the request that the event may lead to: unlike any other.
	Nonce string
	// Do is what happened.
	Do Action
}

// Rules are the settings that Apply follows.
type Rules struct {
	// MinInterval is what smaller intervals are raised to.
	MinInterval time.Duration
	// Every replaces all intervals and lifts MinInterval, if not nil.
	Every *time.Duration
	// FetchTimeout is how long a fetch may last that began in time.
	FetchTimeout time.Duration
	// Keep is how many versions of a document are stored, at least 1.
	Keep int
	// ExpireAfter is how many checks in a row must fail for the page to be given up; 0 and
	// less mean never.
	ExpireAfter int
	// SelectorGone says that a check counts as failed where the selectors of all its
	// documents match nothing, or their texts are empty.
	SelectorGone bool
}

// Action is one of Subscribe, Replace, Cancel, Resume, Expire, CheckNow, Outcome, Pushed and
// Wake.
type Action interface{ action() }

// Subscribe adds a subscription, valid and with its defaults filled in.
type Subscribe struct {
	Origin       string
	Subscription pipeline.Subscription
	// Existing is the subscription that the pair has, if any; Expired the one that expired.
	Existing *flow.Stamped
	Expired  *ExpiredSubscription
}

// Replace makes Subscriptions all that Origin (and Client, if set) wants of the page.
// They are valid, have their defaults filled in, and no two are for one pair.
type Replace struct {
	Origin, Client string
	Keep           bool
	// KeepInterval is pipeline.Never where Keep asks for no checks.
	KeepInterval  pipeline.Duration
	Subscriptions []pipeline.Subscription
	// Resume begins anew what expired, too, where it is wanted unchanged.
	Resume bool
	// Existing are the subscriptions of the page, and Expired its expired ones: all, or all
	// of Client if it is set.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
}

// Cancel ends a client's subscriptions on the page.
type Cancel struct {
	Client string
	// Existing are all that the client has; Expired those that expired.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
}

// Resume begins expired subscriptions of the page anew: those of Client, or all where it
// is empty. With Receiver set, the name of a sink that did not answer and does again,
// only those that ended because of it; where there is none, nothing happens.
type Resume struct {
	Client, Receiver string
	// Expired are the expired subscriptions of the page.
	Expired []ExpiredSubscription
}

// Expire says that Receiver, the name of a sink, is expired for Reason.
type Expire struct {
	Receiver, Reason string
	// Existing are the subscriptions of the page.
	Existing []flow.Stamped
}

// CheckNow asks for a check that begins after it. A run with a Budget makes its own
// checks and no more.
type CheckNow struct{}

// Outcome is what a check found, or a part of that.
type Outcome struct {
	flow.Outcome
	// Existing are the subscriptions of the page, where Page.MayExpire asks for them.
	Existing []flow.Stamped
	// Extractor is what made the standing text, where Page.AsksExtractor asks for it.
	Extractor string
}

// Wake comes at the time of the last WakeAt, or when the process starts.
type Wake struct{}

func (Subscribe) action() {}
func (Replace) action()   {}
func (Cancel) action()    {}
func (Resume) action()    {}
func (Expire) action()    {}
func (CheckNow) action()  {}
func (Outcome) action()   {}
func (Wake) action()      {}

// Output is one thing to do after an event: one of Ask, Version, Rebase, KeepBody, DropBody,
// Record, DropVersion, DropDocument, Stamp, Withdraw, ListExpired, DropExpired, Decide, WakeAt, Checked, Taken,
// Health, Ended and Clear.
type Output interface{ output() }

// Ask publishes a request.
type Ask struct {
	Request flow.Request
	// Interval is how often the page is to be checked.
	Interval time.Duration
	// Since is when the page was asked for before; zero where it was not.
	Since time.Time
	// Rebase says that the request is to carry the body that is kept.
	Rebase bool
}

// Version stores a version and publishes its snapshot.
type Version struct {
	// Snapshot lacks the texts and the language.
	Snapshot flow.Snapshot
	// Packed is the text, packed with pipeline.PackText; Declared the language that the
	// page claims; Extractor what made the text.
	Packed    []byte
	Declared  string
	Extractor string
}

// Rebase puts a text that was made anew in the place of version N of a document.
type Rebase struct {
	Document string
	N        uint64
	Text     flow.Rebased
}

// KeepBody keeps the page's body in the place of an earlier one.
type KeepBody struct{ Body flow.Body }

// DropBody keeps no body of the page.
type DropBody struct{}

// Record keeps what a check found.
type Record struct {
	CheckRecord
	// N is one more than that of the record before, whatever lives and the clock did between.
	N uint64
}

// DropVersion removes version N of a document.
type DropVersion struct {
	Document string
	N        uint64
}

// DropDocument removes all versions and tokens of a document.
type DropDocument struct{ Document string }

// Stamp stores the subscription, or removes it where Until is not Forever, and publishes
// the record.
type Stamp struct{ flow.Stamped }

// Withdraw tells delivery that a subscription was cancelled.
type Withdraw struct{ flow.Withdraw }

// ListExpired keeps a subscription that expired, until it begins anew or is cancelled.
type ListExpired struct{ ExpiredSubscription }

// DropExpired forgets the expired subscription of a pair.
type DropExpired struct{ Document, Client string }

// Health publishes a health event.
type Health struct{ pipeline.Health }

// Decide answers the command that is being handled: with nil where it was accepted.
type Decide struct{ Refusal *flow.Refusal }

// WakeAt sets the page's wake, which is to come at the process's start too with AtStart.
type WakeAt struct {
	Time    time.Time
	AtStart bool
}

// Checked tells that a check was accepted and is complete.
type Checked struct {
	Time time.Time
	// Unchanged says that it found nothing new and nothing wrong.
	Unchanged bool
	// Class and Reason are of the first failure, of the page or one of its documents.
	Class, Reason string
	// Before is the Trouble that the page had before.
	Before string
}

// Ended tells those behind that this life of the page is over, whose last stamp was Stamp,
// and why if it was given up. Listed says that something of it is listed as expired.
type Ended struct {
	Incarnation string
	Stamp       uint64
	Expiry      *flow.Expiry
	Listed      bool
}

// Clear removes what a life of the page stored, but for its expired subscriptions and its
// history. All removes these too.
type Clear struct{ All bool }

func (Ask) output()          {}
func (Version) output()      {}
func (Rebase) output()       {}
func (KeepBody) output()     {}
func (DropBody) output()     {}
func (Record) output()       {}
func (DropVersion) output()  {}
func (DropDocument) output() {}
func (Stamp) output()        {}
func (Withdraw) output()     {}
func (ListExpired) output()  {}
func (DropExpired) output()  {}
func (Health) output()       {}
func (Decide) output()       {}
func (WakeAt) output()       {}
func (Checked) output()      {}
func (Ended) output()        {}
func (Clear) output()        {}

// Apply returns the page after ev, and what is to be done, in order. It is a pure
// function: it changes nothing that p and ev hold. A Page without Incarnation is returned
// where the page ended, the zero Page where nothing of it is kept. Without outputs the page
// is as it was.
func Apply(p Page, ev Event) (Page, []Output) {
	a := &application{Event: ev, p: p.clone()}
	a.clamp()
	switch do := ev.Do.(type) {
	case Subscribe:
		a.subscribe(do)
	case Replace:
		a.replace(do)
	case Cancel:
		a.cancel(do)
	case Resume:
		if !a.resume(do) {
			return p, nil
		}
	case Expire:
		if !a.expireReceiver(do) {
			return p, nil
		}
	case CheckNow:
		if !a.exists() {
			return p, nil
		}
		a.p.Soon = a.p.Soon || ev.Budget == nil
	case Outcome:
		a.existing, a.extractor = do.Existing, do.Extractor
		if !a.outcome(do.Outcome) {
			return p, nil
		}
	case Pushed:
		if !a.pushed(do) {
			return p, nil
		}
	case Wake:
		if !a.exists() {
			return p, nil
		}
		a.giveUp()
	}
	a.settle()
	return a.p, a.out
}

// application is one call of Apply.
type application struct {
	Event
	p   Page
	out []Output
	// spent says that the event completed a check.
	spent bool
	// existing are the page's subscriptions, where an outcome may end them.
	existing []flow.Stamped
	// extractor is what made the standing text that an outcome is about, if the page does
	// not know.
	extractor string
}

func (a *application) emit(o Output) { a.out = append(a.out, o) }

func (a *application) exists() bool { return a.p.Incarnation != "" }
