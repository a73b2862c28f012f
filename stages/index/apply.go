package index

import (
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/restless"
	"github.com/vokter/vokter/pipeline/text"
)

// event is something that happened to a page, with everything that apply needs to handle it.
type event struct {
	// URL is the page's canonical URL.
	URL string
	// Now is the time at which the event is handled.
	Now time.Time
	// Position is the position of the command or the outcome in its log. New incarnations are
	// named after it, and it names the store in which versions are made.
	Position string
	Rules    rules
	// Budget is how many more checks of the page this run may accept; nil means any number. At
	// 0 no request is made.
	Budget *int
	// AtOnce makes the page due now, regardless of its schedule, until a check is complete.
	AtOnce bool
	// Lost says that the process that requested the outstanding check is gone, so its answer
	// will not come.
	Lost bool
	// Nonce is a unique value for the request that this event may cause.
	Nonce string
	// Do says what happened.
	Do action
}

// rules are the settings that apply follows.
type rules struct {
	// MinInterval is what smaller intervals are raised to.
	MinInterval time.Duration
	// Every replaces all intervals and lifts MinInterval, if not nil.
	Every *time.Duration
	// FetchTimeout is how long a fetch may last.
	FetchTimeout time.Duration
	// Keep says which versions of a document are stored: at least 1.
	Keep retention
	// Expire holds for pages and subscriptions that do not say it. Its After is negative in a run that gives up no
	// page.
	Expire pipeline.Expire
	// SelectorGone says that a check counts as failed where the selectors of all its
	// documents match nothing, or their texts are empty.
	SelectorGone bool
	// Current says that the current texts are published.
	Current bool
}

// action is what happened to a page: a command, an outcome, a pushed page or a wake.
type action interface{ action() }

// subscribe adds a subscription, which is valid and has its defaults filled in.
type subscribe struct {
	Origin       string
	Subscription pipeline.Subscription
	// Existing is the current subscription of the same document and client, if any; Expired is
	// their expired one.
	Existing *flow.Stamped
	Expired  *ExpiredSubscription
}

// replace replaces all subscriptions to the page that come from Origin (and are of Client, if
// set) by Subscriptions. These are valid, have their defaults filled in, and no two are for the
// same document and client.
type replace struct {
	Origin, Client string
	Keep           bool
	// KeepInterval is pipeline.Never where Keep asks for no checks.
	KeepInterval pipeline.Interval
	// Language is the language of the page, if Origin keeps it and knows its language.
	Language string
	// Retention says which versions are kept, if Origin keeps the page and says it.
	Retention retention
	// Expire is that of the page, if Origin keeps the page and says it.
	Expire        pipeline.Expire
	Subscriptions []pipeline.Subscription
	// Refused says by their index which of Subscriptions stay as they are, and why.
	Refused map[int]error
	// Spared are clients of which no subscription ends.
	Spared []string
	// Resume also restarts expired subscriptions that are listed unchanged.
	Resume bool
	// Digest, Reply and DryRun are those of flow.ApplyCommand.
	Digest        uint64
	Reply, DryRun bool
	// Existing are the current subscriptions of the page, and Expired its expired ones; only
	// those of Client if that is set.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
}

// cancel ends a client's subscriptions on the page.
type cancel struct {
	Client string
	// Existing are the client's current subscriptions, Expired its expired ones, without those that
	// follow links to the page. Root is a page with such a subscription of the client, if any.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
	Root     string
}

// pause ends a client's subscriptions on the page until Until, or until they are resumed if that is
// zero.
type pause struct {
	Client string
	Until  time.Time
	// Existing are the client's current subscriptions, without those that follow links to the page.
	// Expired are its expired and paused ones.
	Existing []flow.Stamped
	Expired  []ExpiredSubscription
}

// resume restarts expired and paused subscriptions of the page: those of Client, or all if it is empty. If
// Receiver is set, the name of a sink that works again, only those are restarted that ended
// because of that sink; if there are none, nothing happens. With Due, only those are restarted whose
// pause ended by now.
type resume struct {
	Client, Receiver string
	Due              bool
	// Expired are the expired subscriptions of the page.
	Expired []ExpiredSubscription
}

// expire says that Receiver, the name of a sink, expired because of Reason.
type expire struct {
	Receiver, Reason string
	// Existing are the subscriptions of the page.
	Existing []flow.Stamped
}

// checkNow asks for a check that begins after this event, unless one began at After or later. A run with
// a Budget ignores it.
type checkNow struct{ After time.Time }

// told says that clients are notified of a version.
type told struct{ flow.Told }

// outcome is the result of a check, or one part of it.
type outcome struct {
	flow.Outcome
	// Existing are the subscriptions of the page; they are needed only if Page.tellsClients.
	Existing []flow.Stamped
	// Replacements say why a text looks replaced, by document.
	Replacements map[string]string
	// Feeds are what is remembered of the feeds that were read, by document.
	Feeds map[string]feed
	// Lessons are what the new texts show about restless places, by document.
	Lessons map[string]lesson
}

// wake comes at the time that the last wakeAt set, or when the process starts.
type wake struct{}

func (subscribe) action() {}
func (replace) action()   {}
func (cancel) action()    {}
func (pause) action()     {}
func (resume) action()    {}
func (expire) action()    {}
func (checkNow) action()  {}
func (told) action()      {}
func (outcome) action()   {}
func (wake) action()      {}

// output is one thing to do after an event.
type output interface{ output() }

// requestCheck publishes a request for a check.
type requestCheck struct {
	Request flow.Request
	// Interval is how often the page must be checked.
	Interval time.Duration
	// Since is when the previous check was requested; zero for the first one.
	Since time.Time
	// Rebase says that the request must carry the stored body.
	Rebase bool
}

// newVersion stores a version and emits its snapshot.
type newVersion struct {
	// Snapshot is complete except for the language, the text before it and the tokens. Its New is
	// missing where another process read the text.
	Snapshot flow.Snapshot
	// Packed is the text as flow.PackText packs it.
	Packed []byte
	// Extractor names what extracted the text.
	Extractor string
	// Screenshot is a picture of the page, or nil.
	Screenshot []byte
	// Feed is set if the document has View.Items.
	Feed *feedUpdate
	// Replaces says that the version takes the place of the one before: both differ in restless places alone.
	Replaces bool
	// Language holds what may decide the language besides the text. In its Text is what was
	// detected in the whole page, of which the text is a short part.
	Language text.LanguageChoice
}

// rebase replaces the text of version N of a document by one that was extracted again.
type rebase struct {
	Document string
	N        uint64
	Text     flow.Rebased
}

// keepBody stores a body of the page in place of the one stored before.
type keepBody struct{ Body flow.Body }

// dropBody deletes the stored body of the page.
type dropBody struct{}

// storeTable stores what is known of the restless places of a document.
type storeTable struct {
	Document string
	Table    restless.Table
}

// keepUnmade stores a text that was read and is no version.
type keepUnmade struct {
	Document string
	Packed   []byte
}

// dropUnmade deletes that text.
type dropUnmade struct{ Document string }

// record adds the result of a check to the history.
type record struct {
	CheckRecord
	// N is one more than that of the record before. It grows even if the clock is set back or
	// the page begins a new incarnation.
	N uint64
}

// prune drops the versions of a document that Keep does not keep any more.
type prune struct {
	Document string
	Keep     retention
}

// keepTold notes that clients were notified of version N of a document.
type keepTold struct {
	Document string
	N        uint64
	At       time.Time
}

// dropDocument deletes all versions and tokens of a document.
type dropDocument struct{ Document string }

// stamp stores the subscription, or deletes it if its Until is not Forever, and publishes the
// record. Repeats says that the record differs from the one before only in what its client is told.
type stamp struct {
	flow.Stamped
	Repeats bool
}

// outage tells the clients of records that were stamped before of an outage.
type outage struct{ flow.Outage }

// withdraw tells the delivery stage that a subscription was cancelled.
type withdraw struct{ flow.Withdraw }

// storeExpired stores an expired subscription until it is restarted or cancelled.
type storeExpired struct{ ExpiredSubscription }

// deleteExpired deletes the expired subscription with the name of flow.Stamped.Name.
type deleteExpired struct{ Name string }

// healthEvent publishes a health event.
type healthEvent struct{ pipeline.Health }

// decide answers the command that is being handled; a nil Refusal means that it was accepted.
type decide struct {
	Refusal *flow.Refusal
	// Applied is what became of the subscriptions of an ApplyCommand, and Reply that of the command.
	Applied []flow.Applied
	Reply   bool
}

// resumeDue sends the page a ResumeCommand for the pauses that end at the time At.
type resumeDue struct{ At time.Time }

// wakeAt sets the time of the page's next wake. With AtStart a wake also comes when the process
// starts.
type wakeAt struct {
	Time    time.Time
	AtStart bool
}

// checkDone reports that a check is complete and counted.
type checkDone struct {
	Time time.Time
	// Unchanged says that the check found neither a new version nor a failure.
	Unchanged bool
	// Class and Reason describe the first failure of the page or of one of its documents.
	Class, Reason string
	// Before is the page's Trouble before this check.
	Before string
	// DeadLink says that the page was never read, or is a file that is missing, and is watched only because
	// others link to it.
	DeadLink bool
	// Passed is what the reader passed over in the first version of a document.
	Passed []string
}

// pageEnded tells later stages that this incarnation of the page is over. Expiry says why it was given up, if it was.
// Listed says that the page is still listed as expired.
type pageEnded struct {
	Incarnation string
	Expiry      *Expiry
	Listed      bool
}

// pageDormant says that the page became dormant because of the check open.
type pageDormant struct {
	Failures      int
	Class, Reason string
}

// deleteState deletes what the store holds of the page, except its expired subscriptions and its
// history; with All, these too.
type deleteState struct{ All bool }

func (requestCheck) output()  {}
func (newVersion) output()    {}
func (rebase) output()        {}
func (keepBody) output()      {}
func (dropBody) output()      {}
func (storeTable) output()    {}
func (keepUnmade) output()    {}
func (dropUnmade) output()    {}
func (record) output()        {}
func (prune) output()         {}
func (keepTold) output()      {}
func (dropDocument) output()  {}
func (stamp) output()         {}
func (outage) output()        {}
func (pageDormant) output()   {}
func (withdraw) output()      {}
func (storeExpired) output()  {}
func (deleteExpired) output() {}
func (healthEvent) output()   {}
func (decide) output()        {}
func (resumeDue) output()     {}
func (wakeAt) output()        {}
func (checkDone) output()     {}
func (pageEnded) output()     {}
func (deleteState) output()   {}

// apply returns the page after ev and the outputs to carry out, in order. It is a pure
// function: it changes neither p nor what ev holds. If the page ended, the returned Page has no
// Incarnation; if nothing of it is stored, it is the zero Page. If there are no outputs, the
// page did not change.
func apply(p *Page, ev event) (*Page, []output) {
	a := &applier{event: ev, p: p.clone()}
	for i := range p.Documents {
		if d := &p.Documents[i]; p.isResting(d) {
			a.resting = append(a.resting, d.ID)
		}
	}
	a.clampTimes()
	switch do := ev.Do.(type) {
	case subscribe:
		a.subscribe(do)
	case replace:
		a.replace(do)
		if do.DryRun {
			return p, slices.DeleteFunc(a.out, func(o output) bool { _, answers := o.(decide); return !answers })
		}
	case cancel:
		a.cancel(do)
	case pause:
		a.pause(do)
	case resume:
		if !a.resume(do) {
			return p, nil
		}
	case expire:
		if !a.expireReceiver(do) {
			return p, nil
		}
	case follow:
		if !a.follow(do) {
			return p, nil
		}
	case told:
		if p.Incarnation != do.Incarnation || p.Document(do.Document) == nil {
			return p, nil
		}
		return p, []output{keepTold{do.Document, do.Version, do.Time}}
	case checkNow:
		if !a.exists() {
			return p, nil
		}
		if do.After.IsZero() || a.p.Asked.Before(do.After) {
			a.p.Soon = a.p.Soon || ev.Budget == nil
		}
	case outcome:
		a.existing, a.replacements, a.feeds, a.lessons = do.Existing, do.Replacements, do.Feeds, do.Lessons
		if !a.handleOutcome(do.Outcome) {
			return p, nil
		}
	case pushedPage:
		if !a.handlePush(do) {
			return p, nil
		}
	case wake:
		if !a.exists() && p.PauseEnd.IsZero() {
			return p, nil
		}
		a.resumeDuePauses()
		a.giveUpLost()
	}
	a.scheduleNext()
	a.publishTexts(p)
	return a.p, a.out
}

// applier is one call of apply.
type applier struct {
	event
	p   *Page
	out []output
	// resting are the IDs of the documents that rested before the event.
	resting []string
	// checkCompleted says that this event completed a check.
	checkCompleted bool
	// feeds are those of the event, and reading is the last of them that was compared.
	feeds      map[string]feed
	feedUpdate feedUpdate
	// lessons are those of the event.
	lessons map[string]lesson
	// existing are the page's subscriptions, if this outcome may be told to their clients.
	existing []flow.Stamped
	// replacements are those of the outcome or of the pushed page.
	replacements map[string]string
}

func (a *applier) emit(o output) { a.out = append(a.out, o) }

func (a *applier) exists() bool { return a.p.Incarnation != "" }
