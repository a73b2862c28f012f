package index

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// event is one thing that happened to a page, with all that apply needs to know.
type event struct {
	// URL is the page's canonical URL.
	URL string
	// Now is when it is handled.
	Now time.Time
	// Position is where a command or an outcome stands in its log; it names incarnations
	// and the store in which versions are made.
	Position string
	Rules    rules
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
	Do action
}

// rules are the settings that apply follows.
type rules struct {
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

// action is what happened to a page: a command, an outcome, a pushed page or a wake.
type action interface{ action() }

// subscribe adds a subscription, valid and with its defaults filled in.
type subscribe struct {
	Origin       string
	Subscription pipeline.Subscription
	// Existing is the subscription that the pair has, if any; Expired the one that expired.
	Existing *flow.Stamped
	Expired  *ExpiredSubscription
}

// replace makes Subscriptions all that Origin (and Client, if set) wants of the page.
// They are valid, have their defaults filled in, and no two are for one pair.
type replace struct {
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

// cancel ends a client's subscriptions on the page.
type cancel struct {
	Client string
	// Existing are all that the client has; Expired those that expired.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
}

// resume begins expired subscriptions of the page anew: those of Client, or all where it
// is empty. With Receiver set, the name of a sink that did not answer and does again,
// only those that ended because of it; where there is none, nothing happens.
type resume struct {
	Client, Receiver string
	// Expired are the expired subscriptions of the page.
	Expired []ExpiredSubscription
}

// expire says that Receiver, the name of a sink, is expired for Reason.
type expire struct {
	Receiver, Reason string
	// Existing are the subscriptions of the page.
	Existing []flow.Stamped
}

// checkNow asks for a check that begins after it. A run with a Budget makes its own
// checks and no more.
type checkNow struct{}

// outcome is what a check found, or a part of that.
type outcome struct {
	flow.Outcome
	// Existing are the subscriptions of the page, where Page.mayExpire asks for them.
	Existing []flow.Stamped
}

// wake comes at the time of the last wakeAt, or when the process starts.
type wake struct{}

func (subscribe) action() {}
func (replace) action()   {}
func (cancel) action()    {}
func (resume) action()    {}
func (expire) action()    {}
func (checkNow) action()  {}
func (outcome) action()   {}
func (wake) action()      {}

// output is one thing to do after an event.
type output interface{ output() }

// ask publishes a request.
type ask struct {
	Request flow.Request
	// Interval is how often the page is to be checked.
	Interval time.Duration
	// Since is when the page was asked for before; zero where it was not.
	Since time.Time
	// Rebase says that the request is to carry the body that is kept.
	Rebase bool
}

// version stores a version and publishes its snapshot.
type version struct {
	// Snapshot lacks the texts and the language.
	Snapshot flow.Snapshot
	// Packed is the text, packed with pipeline.PackText; Declared the language that the
	// page claims; Extractor what made the text.
	Packed    []byte
	Declared  string
	Extractor string
}

// rebase puts a text that was made anew in the place of version N of a document.
type rebase struct {
	Document string
	N        uint64
	Text     flow.Rebased
}

// keepBody keeps the page's body in the place of an earlier one.
type keepBody struct{ Body flow.Body }

// dropBody keeps no body of the page.
type dropBody struct{}

// record keeps what a check found.
type record struct {
	CheckRecord
	// N is one more than that of the record before, whatever lives and the clock did between.
	N uint64
}

// dropVersion removes version N of a document.
type dropVersion struct {
	Document string
	N        uint64
}

// dropDocument removes all versions and tokens of a document.
type dropDocument struct{ Document string }

// stamp stores the subscription, or removes it where Until is not Forever, and publishes
// the record.
type stamp struct{ flow.Stamped }

// withdraw tells delivery that a subscription was cancelled.
type withdraw struct{ flow.Withdraw }

// listExpired keeps a subscription that expired, until it begins anew or is cancelled.
type listExpired struct{ ExpiredSubscription }

// dropExpired forgets the expired subscription of a pair.
type dropExpired struct{ Document, Client string }

// healthEvent publishes a health event.
type healthEvent struct{ pipeline.Health }

// decide answers the command that is being handled: with nil where it was accepted.
type decide struct{ Refusal *flow.Refusal }

// wakeAt sets the page's wake, which is to come at the process's start too with AtStart.
type wakeAt struct {
	Time    time.Time
	AtStart bool
}

// checked tells that a check was accepted and is complete.
type checked struct {
	Time time.Time
	// Unchanged says that it found nothing new and nothing wrong.
	Unchanged bool
	// Class and Reason are of the first failure, of the page or one of its documents.
	Class, Reason string
	// Before is the Trouble that the page had before.
	Before string
}

// ended tells those behind that this life of the page is over, whose last stamp was Stamp,
// and why if it was given up. Listed says that something of it is listed as expired.
type ended struct {
	Incarnation string
	Stamp       uint64
	Expiry      *flow.Expiry
	Listed      bool
}

// clearPage removes what a life of the page stored, but for its expired subscriptions and its
// history. All removes these too.
type clearPage struct{ All bool }

func (ask) output()          {}
func (version) output()      {}
func (rebase) output()       {}
func (keepBody) output()     {}
func (dropBody) output()     {}
func (record) output()       {}
func (dropVersion) output()  {}
func (dropDocument) output() {}
func (stamp) output()        {}
func (withdraw) output()     {}
func (listExpired) output()  {}
func (dropExpired) output()  {}
func (healthEvent) output()  {}
func (decide) output()       {}
func (wakeAt) output()       {}
func (checked) output()      {}
func (ended) output()        {}
func (clearPage) output()    {}

// apply returns the page after ev, and what is to be done, in order. It is a pure
// function: it changes nothing that p and ev hold. A Page without Incarnation is returned
// where the page ended, the zero Page where nothing of it is kept. Without outputs the page
// is as it was.
func apply(p Page, ev event) (Page, []output) {
	a := &application{event: ev, p: p.clone()}
	a.clamp()
	switch do := ev.Do.(type) {
	case subscribe:
		a.subscribe(do)
	case replace:
		a.replace(do)
	case cancel:
		a.cancel(do)
	case resume:
		if !a.resume(do) {
			return p, nil
		}
	case expire:
		if !a.expireReceiver(do) {
			return p, nil
		}
	case checkNow:
		if !a.exists() {
			return p, nil
		}
		a.p.Soon = a.p.Soon || ev.Budget == nil
	case outcome:
		a.existing = do.Existing
		if !a.outcome(do.Outcome) {
			return p, nil
		}
	case pushedPage:
		if !a.pushed(do) {
			return p, nil
		}
	case wake:
		if !a.exists() {
			return p, nil
		}
		a.giveUp()
	}
	a.settle()
	return a.p, a.out
}

// application is one call of apply.
type application struct {
	event
	p   Page
	out []output
	// spent says that the event completed a check.
	spent bool
	// existing are the page's subscriptions, where an outcome may end them.
	existing []flow.Stamped
}

func (a *application) emit(o output) { a.out = append(a.out, o) }

func (a *application) exists() bool { return a.p.Incarnation != "" }
