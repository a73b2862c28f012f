package flow

import (
	"time"
)

// Kinds of observations.
const (
	KindCheck        = "check"        // a check of a page was made; N is 1 if it succeeded after one that failed
	KindUnchanged    = "unchanged"    // a check found nothing new
	KindFailed       = "failed"       // a check failed; Text is the reason, N is 1 if the check before it failed, too
	KindHeld         = "held"         // a run with --checks will not check a page again; Text is the reason
	KindDormant      = "dormant"      // a page became dormant; Class and Text say why its last check failed
	KindEnded        = "ended"        // the last subscription of a page ended; Text is the reason if the page expired
	KindPushed       = "pushed"       // a page that was pushed was read
	KindUnwatched    = "unwatched"    // a pushed page is not watched and was dropped; only URL is set
	KindRepeated     = "repeated"     // a page was pushed again under the same ID; only URL is set
	KindVersion      = "version"      // a version was stored; N is its number
	KindChange       = "change"       // two versions differ; N is the new one's number
	KindFiltered     = "filtered"     // a filter showed that a change touches no keyword, so its subscriptions were not read
	KindNotification = "notification" // a notification was made; N is how many diffs it holds
	KindDelivered    = "delivered"    // a receiver has a notification; After is how long after the check
	KindAttempt      = "attempt"      // an attempt to deliver failed; only Sink, Class and Time are set
	KindDead         = "dead"         // a notification became a dead letter; Text is the reason
	KindUnhandled    = "unhandled"    // another message became a dead letter; only URL, ID and Text, the reason, are set
	KindDropped      = "dropped"      // a notification is not delivered, because its subscription was cancelled
)

// Observation is something that a stage did. It is reported after the commit. Fields that do not
// apply are zero.
type Observation struct {
	// Kind is one of the Kind constants.
	Kind string
	// Page is the key and Document the ID of what the observation is about; URL is the URL of the
	// page.
	Page, Document, URL string
	// ID is the ID of the change, notification or message.
	ID string
	// N is a number that Kind explains.
	N int
	// Time is when it happened; if a check caused it, the time of the check.
	Time time.Time
	// Addressed is the notification of KindNotification. It must not be changed.
	Addressed *Addressed
	// Sink is the receiver of a notification that was delivered, given up or dropped, or of a failed
	// attempt.
	Sink string
	// Class is the class of KindFailed, such as pipeline.FailTimeout, or of KindAttempt, as
	// failure.Class.String writes it.
	Class string
	// After is the time from the check that saw the change to the delivery. It is zero for items of
	// digests, which wait on purpose.
	After time.Duration
	// Text has details in words for the user, without secrets.
	Text string
}

// Observer is called with what stages do, for summaries and progress. It is called from many
// goroutines and must not block. A crash loses observations, so nothing that must be exact may
// depend on them. A nil Observer ignores them.
type Observer func(Observation)

// Note calls o with ob, unless o is nil.
func (o Observer) Note(ob Observation) {
	if o != nil {
		o(ob)
	}
}

// Gauge is a figure of a process for monitoring.
type Gauge struct {
	// Name is one of the Gauge constants, or another name that begins with vokter_. The value of a
	// name that ends in _total only grows while the process runs.
	Name string
	// Help is a sentence that explains the figure.
	Help string
	// Labels distinguish figures with one Name, which all have the same label names.
	Labels map[string]string
	Value  float64
	// Histogram, if it is not nil, has the distribution of observed values; Value is their sum.
	Histogram *Histogram
}

// Histogram is the distribution of observed values.
type Histogram struct {
	Count uint64
	// Buckets has, for each upper bound, the number of values up to it.
	Buckets map[float64]uint64
}

// Gauges of a transport whose lanes are shared with other processes.
const (
	// GaugeLanes is the number of lanes in all processes together.
	GaugeLanes = "vokter_lanes"
	// GaugeLanesOwned is the number of lanes that this process owns. GaugeLanesRestoring is how many
	// of them it does not yet handle messages of, because it still reads their state.
	GaugeLanesOwned     = "vokter_lanes_owned"
	GaugeLanesRestoring = "vokter_lanes_restoring"
	// GaugeRestored is the number of records of state that were read to restore lanes.
	GaugeRestored = "vokter_restored_records_total"
	// GaugeRestores is the number of lanes whose state was restored, GaugeRestoreSeconds how long that
	// took in all, in seconds.
	GaugeRestores       = "vokter_lanes_restored_total"
	GaugeRestoreSeconds = "vokter_lane_restore_seconds_total"
	// GaugeStoreBytes is the size of the store on disk, or of the copies of the state on disk.
	GaugeStoreBytes = "vokter_store_bytes"
	// GaugeLag is the number of messages that a group is behind the end of a topic, in the lanes that
	// this process owns. Its labels are group and topic. It is an upper bound, because offsets have
	// gaps.
	GaugeLag = "vokter_lag"
	// GaugeTransactions is the number of committed transactions, GaugeTransactionsFailed that of
	// aborted ones, whose messages are handled again.
	GaugeTransactions       = "vokter_transactions_total"
	GaugeTransactionsFailed = "vokter_transactions_failed_total"
)
