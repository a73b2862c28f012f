package pipelinetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/vokter/vokter/pipeline/flow"
)

// Config is the configuration of a flow.Transport under test.
type Config struct {
	// Topics declares the consumer groups of each topic. Nil declares nothing.
	Topics map[string]flow.Topic
	// Bound is how many messages may wait in a lane. 0 means the transport's default.
	Bound int
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// Unhandled is that of flow.Wiring.
	Unhandled func(flow.Tx, flow.Unhandled) error
}

// Site is a place where transports keep their data, one transport at a time.
type Site interface {
	// Open opens a transport on the data of earlier ones. It closes the transport at the end of
	// the test if the test has not.
	Open(t *testing.T, c Config) flow.Transport
}

// Crasher is a Site that can crash: transports opened afterwards find the data that a power cut
// now might leave. The test closes the open transport, which must have no further effect.
type Crasher interface {
	Site
	Crash(random *rand.Rand)
}

// Features are the promises that a transport makes beyond the interface.
type Features struct {
	// Lanes is how many messages of a topic are handled at the same time.
	Lanes int
	// Bubble says that a transport works in a testing/synctest bubble, in which
	// waiting takes no time. Without it the same tests wait for milliseconds.
	Bubble bool
	// Volatile says that nothing outlives Close.
	Volatile bool
	// Unbounded says that topics are never full, because messages wait outside of the process.
	Unbounded bool
	// Shared says that undeclared groups are kept, because other processes may declare them.
	Shared bool
	// At returns a Site in a directory, from which another process continues after one was
	// killed. Nil means that the transport has none.
	At func(dir string) Site
}

// TestTransport tests what Watermill's own suite does not: order per key, one transaction for
// state, outputs, wakes and position, back-pressure, crashes. Each test gets a new site. Sites
// that are a Crasher are also crashed; the disks of those that are a Breaker also fail.
func TestTransport(t *testing.T, f Features, site func(t *testing.T) Site) {
	tests := []struct {
		name    string
		test    func(t *testing.T, f Features, s Site)
		without bool // the transport does not have the feature, so the test is skipped
	}{
		{"OrderPerKey", testOrderPerKey, false},
		{"ParallelAcrossKeys", testParallelAcrossKeys, false},
		{"OrderSurvivesRejection", testOrderSurvivesRejection, false},
		{"PublisherCloseIsPrivate", testPublisherCloseIsPrivate, false},
		{"RoundTrip", testRoundTrip, false},
		{"HeldUntilSubscribed", testHeldUntilSubscribed, false},
		{"SeveralGroups", testSeveralGroups, false},
		{"PublishBlocksAtTheBound", testPublishBlocks, f.Unbounded},
		{"CloseUnblocksPublish", testCloseUnblocksPublish, f.Unbounded},
		{"CommitWaitsForRoom", testCommitWaitsForRoom, f.Unbounded},
		{"CommitIsAtomic", testCommitIsAtomic, false},
		{"RejectionDropsAll", testRejectionDropsAll, false},
		{"ResetDropsAll", testResetDropsAll, false},
		{"OnCommitBeforeNext", testOnCommitBeforeNext, false},
		{"AcknowledgedUnhandled", testAcknowledgedUnhandled, false},
		{"AcknowledgedAfterFailure", testAcknowledgedAfterFailure, false},
		{"AcknowledgedTooEarly", testAcknowledgedTooEarly, false},
		{"PublisherJoinsTransaction", testPublisherJoinsTransaction, false},
		{"TransactionsEnd", testTransactionsEnd, false},
		{"StateViews", testStateViews, false},
		{"Chain", testChain, false},
		{"ChainSavepoint", testChainSavepoint, false},
		{"ChainWakes", testChainWakes, false},
		{"ChainKey", testChainKey, false},
		{"EmitAll", testEmitAll, false},
		{"Neighbours", testNeighbours, false},
		{"Tail", testTail, !f.Shared},
		{"WakesOnce", testWakesOnce, false},
		{"WakeReplacedAndTakenBack", testWakeReplaced, false},
		{"WakeRejectedComesAgain", testWakeRejected, false},
		{"WakeInThePast", testWakeInThePast, false},
		{"WakeSurvivesReopen", testWakeSurvivesReopen, f.Volatile},
		{"WakeAtStart", testWakeAtStart, f.Volatile},
		{"WakesInState", testWakesInState, f.Volatile},
		{"ClockSetAhead", testClockSetAhead, false},
		{"ClockSetBack", testClockSetBack, false},
		{"ClockSetBackBetween", testClockSetBackBetween, f.Volatile},
		{"ClockSetAheadWhileWaking", testClockSetAheadWhileWaking, f.Volatile},
		{"BrokenReads", testBrokenReads, f.Volatile},
		{"Post", testPost, f.Volatile},
		{"HandlersMayFinish", testHandlersMayFinish, f.Volatile},
		{"SurvivesReopen", testSurvivesReopen, f.Volatile},
		{"DroppedGroup", testDroppedGroup, f.Volatile || f.Shared},
		{"Idle", testIdle, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.without {
				t.Skip("the features of the transport are without it")
			}
			s := site(t)
			f.runTest(t, func(t *testing.T) { test.test(t, f, s) })
		})
	}
	for seed := range uint64(crashSeeds) {
		t.Run(fmt.Sprint("SurvivesCrashes/", seed), func(t *testing.T) {
			s, ok := site(t).(Crasher)
			if !ok {
				t.Skip("this site cannot crash")
			}
			f.runTest(t, func(t *testing.T) { testSurvivesCrashes(t, s, seed) })
		})
	}
	t.Run("SurvivesKill", func(t *testing.T) { testSurvivesKill(t, f) })
}

// crashSeeds is how many random histories with crashes are tried.
const crashSeeds = 8

// runTest runs a test, in a synctest bubble if the transport works in one.
func (f Features) runTest(t *testing.T, test func(t *testing.T)) {
	if f.Bubble {
		synctest.Test(t, test)
		return
	}
	test(t)
}

// TestWatermill runs Watermill's own suite on tr. The suite skips three of its tests: TestReconnect
// restarts a broker that it runs itself; TestNewSubscriberReceivesOldMessages is for systems where a
// group without a position begins anew each time, while here it continues, and what all groups
// consumed may be gone. Everything else must run and pass.
func TestWatermill(t *testing.T, tr flow.Transport) {
	group := func(_ *testing.T, group string) (message.Publisher, message.Subscriber) {
		return payloadKeyed{tr.Publisher()}, tr.Subscriber(group)
	}
	features := tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true}
	tests.TestPubSub(t, features, func(t *testing.T) (message.Publisher, message.Subscriber) { return group(t, "g") }, group)
}

// payloadKeyed gives messages their payload as key: Watermill's suite demands order among
// messages of equal payload, and has no notion of a key.
type payloadKeyed struct{ message.Publisher }

func (k payloadKeyed) Publish(topic string, msgs ...*message.Message) error {
	var out []*message.Message
	for _, m := range msgs {
		c := m.CopyWithContext()
		c.Metadata.Set(flow.HeaderKey, string(m.Payload))
		out = append(out, c)
	}
	return k.Publisher.Publish(topic, out...)
}
