package kafka_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// keyed gives messages their payload as key: Watermill's suite demands order among
// messages of equal payload, and has no notion of a key.
type keyed struct{ message.Publisher }

func (k keyed) Publish(topic string, msgs ...*message.Message) error {
	var out []*message.Message
	for _, m := range msgs {
		c := m.CopyWithContext()
		c.Metadata.Set(flow.HeaderKey, string(m.Payload))
		out = append(out, c)
	}
	return k.Publisher.Publish(topic, out...)
}

// TestWatermill runs Watermill's own suite with 8 lanes. The suite skips three of its
// tests: TestReconnect restarts a broker that it runs itself;
// TestNewSubscriberReceivesOldMessages is for systems where a group without a position
// begins anew each time, while here it begins where it stopped. Everything else must run
// and pass.
func TestWatermill(t *testing.T) {
	run := func(t *testing.T, brokers []string) {
		tr, err := kafka.Open(context.Background(), kafka.Config{
			Brokers: brokers, Prefix: "mill-" + rand.Text() + ".", Lanes: testLanes, Replication: 1, SessionTimeout: 6 * time.Second, MaxPause: 10 * time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		})
		<-tr.Gained()
		group := func(_ *testing.T, group string) (message.Publisher, message.Subscriber) {
			return keyed{tr.Publisher()}, tr.Subscriber(group)
		}
		features := tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true}
		tests.TestPubSub(t, features, func(t *testing.T) (message.Publisher, message.Subscriber) {
			return group(t, "g")
		}, group)
	}
	t.Run("kfake", func(t *testing.T) { run(t, brokers(t)) })
	t.Run("real", func(t *testing.T) { run(t, realBrokers(t)) })
}
