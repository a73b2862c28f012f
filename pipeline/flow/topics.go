package flow

import (
	"log/slog"
	"slices"
	"strconv"
	"time"
)

// Topics between the stages, with the keys of their messages.
const (
	TopicRequests      = "requests"      // key: host. Index asks fetch to check a page.
	TopicIngest        = "ingest"        // key: any. Pages and texts that other programs push.
	TopicDocuments     = "documents"     // key: page. Commands, outcomes of checks and pushed pages, in one order for each page.
	TopicSnapshots     = "snapshots"     // key: page. A new version of a document, with the text before it. It has no log.
	TopicChanges       = "changes"       // key: page. The differences between two versions.
	TopicCurrent       = "pages"         // key: document. The current text of each document; see Topic.Table.
	TopicSubscriptions = "subscriptions" // key: page. Subscriptions, with the version from which on they are notified.
	TopicNotifications = "notifications" // key: receiver. Notifications to deliver.
	TopicDead          = "dead"          // key: receiver, or the key or ID of the message. Dead letters, with the reason.
	TopicHealth        = "health"        // key: page, receiver or HealthKey. Health events.
	TopicDecisions     = "decisions"     // key: page. Results of commands, for a process that waits for one.
	TopicSweeps        = "sweeps"        // no key, in every lane. A receiver expired or recovered.
)

// OthersWrite reports whether other programs may write to topic; docs/operations.md lists the
// rights. The headers of a message there cannot be trusted, and no message there stops a process.
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
	GroupHealth   = "health" // notifies the health sinks, and ends subscriptions of an expired receiver
)

// Message types.
const (
	// On TopicRequests.
	TypeRequest = "vokter.request.v1" // body: Request

	// On TopicIngest. The body is the page, the subject its URL, and the header content-type its
	// content type. See FromIngest.
	TypePage = "vokter.page.v1"

	// On TopicDocuments.
	TypeSubscribe = "vokter.subscribe.v1" // body: SubscribeCommand
	TypeCancel    = "vokter.cancel.v1"    // body: CancelCommand
	TypeApply     = "vokter.apply.v1"     // body: ApplyCommand
	TypePause     = "vokter.pause.v1"     // body: PauseCommand
	TypeResume    = "vokter.resume.v1"    // body: ResumeCommand
	TypeExpire    = "vokter.expire.v1"    // body: ExpireCommand
	TypeCheckNow  = "vokter.check.v1"     // no body, or a CheckNow; subject: the page's URL
	TypeOutcome   = "vokter.outcome.v1"   // see Outcome.Message
	TypePushed    = "vokter.pushed.v1"    // see TakenMessage
	TypeFollow    = "vokter.follow.v1"    // body: FollowCommand
	TypeLinks     = "vokter.links.v1"     // body: LinksFound
	TypeTold      = "vokter.told.v1"      // body: Told
	TypeCompare   = "vokter.compare.v1"   // body: SnapshotName

	// On TopicSnapshots.
	TypeSnapshot = "vokter.snapshot.v1" // see Snapshot.Message

	// On TopicChanges.
	TypeChange = "vokter.change.v1" // body: Change
	// TypeOutage says that clients are to be told of a page that fails, or that answers again. It is in its place among
	// the changes of the page.
	TypeOutage = "vokter.outage.v1" // body: Outage
	// TypeEnded says that an incarnation of a page ended. It is after the last change of the page.
	TypeEnded = "vokter.ended.v1" // body: Ended

	// On TopicCurrent.
	TypeCurrent = "vokter.current.v1" // body: Current; none where the document ended

	// On TopicSubscriptions.
	TypeStamp = "vokter.subscription.v1" // body: Stamped

	// On TopicNotifications.
	TypeAddressed = "vokter.addressed.v1" // body: Addressed
	TypeWithdraw  = "vokter.withdraw.v1"  // body: Withdraw
	TypeRetry     = "vokter.retry.v1"     // body: RetryCommand

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

// WakeMessage returns the message that Tx.WakeAt delivers: the wake of key for the time at, to the
// group that consumes topic. Its ID is derived from its arguments.
func WakeMessage(group, topic, key string, at time.Time) *Message {
	return &Message{
		ID:    DeriveID("wake", group, topic, key, strconv.FormatInt(at.UnixNano(), 10)),
		Topic: topic, Key: key, Type: TypeWake, Time: at,
	}
}

// Topic declares a topic.
type Topic struct {
	// Groups are the consumer groups that consume it.
	Groups []string
	// Timed are those of Groups that keep the wakes of this topic in their state, so that a wake needs no
	// write of its own. For each key, the value WakeName begins with the wake that the last transaction
	// asked for (see AppendWake). The transport reads these values when it starts. A key for which the
	// group keeps any value has this one, so the transport need not look for keys elsewhere. The group
	// must not ask for wakes on another topic.
	Timed []string
	// Head is the one of Groups with whose messages a chain begins, or empty. One topic at most has a Head. In a
	// chain, what a handler emits to a topic with a Chained group is handled before the transaction ends; see Tx.Emit.
	Head string
	// Chained is the one of Groups, if any, that gets what handlers of the chain emit to this topic, and nothing else.
	// The other groups read the log of the topic.
	Chained string
	// Private says that only the Chained group gets the messages, so that the topic has no log.
	Private bool
	// Table says that only the last message of each key counts, and none of a key whose last message has no body. A
	// transport keeps that one and may drop the others. It need not publish the topic; see Transport.Publishes.
	Table bool
	// Outlet says that the log of the topic is for other programs. Unless one of Groups reads it, it need not be divided
	// into lanes.
	Outlet bool
	// Feedback says that a handler may publish to this topic what an earlier handler of the same
	// cycle consumes. So that a cycle cannot deadlock, handlers never wait for room in it.
	Feedback bool
	// Entry says that the topic is in no cycle: its handlers wait for room in Feedback topics as
	// well, where the transport bounds them.
	Entry bool
	// Ephemeral says that messages of the topic may be lost when the process ends, since their
	// sender sends them again after a start. While the process runs they are delivered as others
	// are, after the commit that publishes them. Without a consumer group they are dropped.
	Ephemeral bool
}

// Wiring is what a Router gives its Transport at the start.
type Wiring struct {
	// Topics are all topics by name.
	Topics map[string]Topic
	// Dir is a directory for a cache of the state. If it is empty, the cache is in memory.
	Dir string
	// MinFree is how many bytes the disk of Dir must have free, 0 for no limit.
	MinFree int64
	// Grace is how long handlers may go on when their subscription is closed, before their contexts
	// are cancelled.
	Grace time.Duration
	// Bare says that no handler reads the metadata of Watermill messages, because all call
	// Tx.Message. A transport need not build the metadata then.
	Bare bool
	// Unhandled handles each message that was acknowledged without a call of Tx.Handle: something
	// between transport and handler kept the message. It gets a transaction of its own, which is
	// committed in place of that of the handler. After an error the message comes again. nil: an
	// acknowledgement is enough for a commit.
	Unhandled func(Tx, Unhandled) error
	// Rejected is called each time that a message was rejected though its handler had not failed: something between
	// transport and handler rejected it, or lost its context. Times counts that for the message with that ID, and is 0
	// when it does not come again from this process. Nil: nobody asks.
	Rejected func(u Unhandled, id string, times int)
	// Source returns the name of the installation, the Source of messages that other programs read; empty if it has none.
	// Nil: it has none.
	Source func() string
	// Now is the clock.
	Now func() time.Time
	// Logger gets messages for operators.
	Logger *slog.Logger
	// OnBroken is called when the Transport cannot continue, with an error that says what to do. It
	// may be called from any goroutine, and more than once.
	OnBroken func(error)
	// OnFatal is called just before the process ends because the disk fails.
	OnFatal func(error)
}

// Unhandled says from where an unhandled message is, and which group did not handle it.
type Unhandled struct {
	Group, Topic string
	// Published says that it was published. Otherwise it is a wake, or a Poster posted it.
	Published bool
}

// HasLog reports whether messages of the topic can be read outside of the transactions that emit them.
func (t Topic) HasLog() bool { return !t.Private }

// ReadBy reports whether group reads the log of the topic: it is not Chained.
func (t Topic) ReadBy(group string) bool { return group != t.Chained }

// IsOutlet reports whether only other programs read the log of the topic.
func (t Topic) IsOutlet() bool { return t.Outlet && !slices.ContainsFunc(t.Groups, t.ReadBy) }

// KeyName returns the name of a value that each key has for which group keeps state, and "" if there is
// no such name.
func KeyName(topics map[string]Topic, group string) string {
	for _, t := range topics {
		if slices.Contains(t.Timed, group) {
			return WakeName
		}
	}
	return ""
}
