package flow

import (
	"time"
)

// Kinds of observations.
const (
	KindCheck        = "check"        // a page was asked for
	KindUnchanged    = "unchanged"    // a check found nothing new
	KindFailed       = "failed"       // a check failed; Text is the reason
	KindHeld         = "held"         // a page is not checked any more in a run of some checks; Text is the reason
	KindEnded        = "ended"        // nobody watches a page any more; Text says why where it expired
	KindPushed       = "pushed"       // a page that was pushed was read
	KindUnwatched    = "unwatched"    // a page was pushed that nobody watches; only URL is set
	KindRepeated     = "repeated"     // a page was pushed again under the same ID; only URL is set
	KindVersion      = "version"      // a version was stored; N is its number
	KindChange       = "change"       // two versions differ; N is the new one's number
	KindNotification = "notification" // a notification was made; N is how many diffs it holds
	KindDelivered    = "delivered"    // a receiver has a notification
	KindDead         = "dead"         // a notification was given up; Text is the reason
	KindUnhandled    = "unhandled"    // a message could not be handled and is kept as a dead letter; only URL, ID and Text, the reason, are set
	KindDropped      = "dropped"      // a notification is not delivered, since its subscription was cancelled
)

// Observation is one thing that a stage did, told once the commit that did it stands.
// Fields that do not apply are zero.
type Observation struct {
	// Kind is one of the Kind constants.
	Kind string
	// Page and Document are the keys of what it is about; URL is the page's URL.
	Page, Document, URL string
	// ID is that of the change, notification or message.
	ID string
	// N is a number that Kind explains.
	N int
	// Time is when it happened: of the check, where there is one.
	Time time.Time
	// Text says more, in words for the user and without secrets.
	Text string
}

// Observer is told what stages do, for summaries and progress. It is called from many
// goroutines and must not block. A crash loses what was not told yet, so an Observer
// may not carry anything that has to be right. The nil Observer hears nothing.
type Observer func(Observation)

// Note tells o of ob, if there is an o.
func (o Observer) Note(ob Observation) {
	if o != nil {
		o(ob)
	}
}

// Gauge is a figure about a process for those who watch over it. Who has some to offer has
// a method Gauges() []Gauge, which returns them as they are now, from any goroutine, without
// asking anybody outside the process.
type Gauge struct {
	// Name is one of the constants below, or another that begins with vokter_; with _total
	// at its end the value only grows while the process lives.
	Name string
	// Help is a sentence about what it says.
	Help string
	// Labels tell figures of one name from each other. All of one name have the same labels.
	Labels map[string]string
	Value  float64
}

// Gauges of a transport whose lanes are shared with other processes.
const (
	// GaugeLanes is how many lanes there are, in all processes together.
	GaugeLanes = "vokter_lanes"
	// GaugeLanesOwned is how many lanes this process owns, GaugeLanesRestoring how many of
	// them it does not handle messages of yet, since it reads their state.
	GaugeLanesOwned     = "vokter_lanes_owned"
	GaugeLanesRestoring = "vokter_lanes_restoring"
	// GaugeRestored is how many records of state were read to restore lanes.
	GaugeRestored = "vokter_restored_records_total"
	// GaugeLag is how far a group is behind the end of a topic, in the lanes that this process
	// owns: with the labels group and topic. It is an upper bound, since ends have gaps.
	GaugeLag = "vokter_lag"
	// GaugeTransactions is how many transactions were committed, GaugeTransactionsFailed how
	// many were given up, each with the messages in it, which are handled again.
	GaugeTransactions       = "vokter_transactions_total"
	GaugeTransactionsFailed = "vokter_transactions_failed_total"
)
