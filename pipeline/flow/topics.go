package flow

import (
	"log/slog"
	"strconv"
	"time"
)

// Topics between the stages. The key of each is the owner of the state that its
// consumer needs.
const (
	TopicRequests      = "requests"      // key: host. Index asks fetch to check a page.
	TopicIngest        = "ingest"        // key: any. Pages and texts that other programs push.
	TopicDocuments     = "documents"     // key: page. All that happens to a page, in one order.
	TopicSnapshots     = "snapshots"     // key: page. A new version of a document, with the text before it.
	TopicChanges       = "changes"       // key: page. What differs between two versions.
	TopicSubscriptions = "subscriptions" // key: page. Who watches what, from which version on.
	TopicNotifications = "notifications" // key: receiver. What is to be delivered.
	TopicDead          = "dead"          // key: receiver, or the key of the message, or its ID. What was given up, with the reason.
	TopicHealth        = "health"        // key: page, receiver or HealthKey. How pages, receivers and the process do.
	TopicDecisions     = "decisions"     // key: page. How commands ended, for who waits for that in another process.
	TopicSweeps        = "sweeps"        // no key: in every lane. What follows from a health event for all pages.
)

// OthersWrite reports whether other programs may write to topic, as docs/operations.md says. What
// a message there says about itself proves nothing: no message there may stop a process.
func OthersWrite(topic string) bool {
	return topic == TopicDocuments || topic == TopicIngest || topic == TopicDead
}

// Consumer groups of the built-in stages.
const (
	GroupFetch    = "fetch"
	GroupIndex    = "index"
	GroupDiff     = "diff"
	GroupMatch    = "match"
	GroupDelivery = "delivery"
	GroupDead     = "dead"   // keeps dead letters until they are replayed
	GroupHealth   = "health" // tells the health sinks, and ends what depended on an expired receiver
)

// Message types.
const (
	// On TopicRequests.
	TypeRequest = "vokter.request.v1" // body: Request

	// On TopicIngest. The body is the page as it was read, of the content type that the
	// header names; the subject is its URL. See FromIngest.
	TypePage = "vokter.page.v1"

	// On TopicDocuments.
	TypeSubscribe = "vokter.subscribe.v1" // body: SubscribeCommand
	TypeCancel    = "vokter.cancel.v1"    // body: CancelCommand
	TypeApply     = "vokter.apply.v1"     // body: ApplyCommand
	TypeResume    = "vokter.resume.v1"    // body: ResumeCommand
	TypeExpire    = "vokter.expire.v1"    // body: ExpireCommand
	TypeCheckNow  = "vokter.check.v1"     // no body; subject: the page's URL
	TypeOutcome   = "vokter.outcome.v1"   // see Outcome.Message
	TypePushed    = "vokter.pushed.v1"    // see Pushed.Taken

	// On TopicSnapshots.
	TypeSnapshot = "vokter.snapshot.v1" // see Snapshot.Message
	// TypeEnded says that an incarnation of a page ended. It passes through
	// TopicSnapshots and TopicChanges behind the page's last change.
	TypeEnded = "vokter.ended.v1" // body: Ended

	// On TopicChanges.
	TypeChange = "vokter.change.v1" // body: Change

	// On TopicSubscriptions.
	TypeStamp = "vokter.subscription.v1" // body: Stamped

	// On TopicNotifications.
	TypeNotification = "vokter.notification.v1" // body: Addressed
	TypeWithdraw     = "vokter.withdraw.v1"     // body: Withdraw
	TypeRetry        = "vokter.retry.v1"        // body: RetryCommand

	// On TopicDead.
	TypeDeadLetter = "vokter.dead.v1"   // body: DeadLetter
	TypeReplay     = "vokter.replay.v1" // body: ReplayCommand

	// On TopicHealth.
	TypeHealth = "vokter.health.v1" // body: Health

	// On TopicDecisions.
	TypeDecision = "vokter.decision.v1" // body: Decision

	// On TopicSweeps.
	TypeSweep = "vokter.sweep.v1" // body: Sweep

	// TypeWake is the message that Tx.WakeAt delivers.
	TypeWake = "vokter.wake.v1"
)

// WakeMessage is what Tx.WakeAt delivers to a group that consumes topic: the wake of key that
// was set for the time at. Its ID is derived from these.
func WakeMessage(group, topic, key string, at time.Time) *Message {
	return &Message{
		ID:    DeriveID("wake", group, topic, key, strconv.FormatInt(at.UnixNano(), 10)),
		Topic: topic, Key: key, Type: TypeWake, Time: at,
	}
}

// Topic declares a topic.
type Topic struct {
	// Groups are the consumer groups that read it.
	Groups []string
	// Feedback marks a topic that closes a circle: handlers never wait for room in it.
	Feedback bool
	// Entry marks a topic that is in no circle: its handlers wait for room in Feedback topics
	// too, where the transport bounds them.
	Entry bool
	// Ephemeral marks a topic whose messages are asked for again after a start, so that they
	// need not outlive the process. They come in order and until they were handled, after the
	// commit that publishes them; where no group reads them, nothing keeps them.
	Ephemeral bool
	// AnyLane marks a topic whose messages are handled in the lane in which their publisher
	// put them, whatever their key is.
	AnyLane bool
}

// Wiring is what a Router tells its Transport.
type Wiring struct {
	// Topics says who consumes what.
	Topics map[string]Topic
	// Dir is where the Transport may keep a cache of its state; empty: in memory.
	Dir string
	// MinFree is how many bytes the disk of Dir must have free; 0: nothing is watched.
	MinFree int64
	// Grace is how long a closing subscription lets handlers finish before their contexts
	// are cancelled.
	Grace time.Duration
	// Bare says that nobody reads the metadata of Watermill's messages, since all handlers ask
	// Tx.Message. A transport need not build them then.
	Bare bool
	// Now is the clock.
	Now func() time.Time
	// Logger gets what operators should know.
	Logger *slog.Logger
	// OnBroken is called, from any goroutine and maybe more than once, when the Transport
	// cannot go on, with an error that says what to do.
	OnBroken func(error)
	// OnFatal is called just before the process ends because the disk fails.
	OnFatal func(error)
}
