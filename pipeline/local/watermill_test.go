package local_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
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
// tests: TestReconnect needs a broker to restart, and there is none;
// TestNewSubscriberReceivesOldMessages is for systems where a group without a position
// begins anew each time, while here it begins where it stopped, and what all groups
// consumed is trimmed. Everything else must run and pass.
func TestWatermill(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			tr, err := local.Open(local.Config{Dir: dir, Lanes: 8, Bound: 1 << 20, Grace: time.Second, MaxPause: 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			})
			group := func(_ *testing.T, group string) (message.Publisher, message.Subscriber) {
				return keyed{tr.Publisher()}, tr.Subscriber(group)
			}
			features := tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true}
			tests.TestPubSub(t, features, func(t *testing.T) (message.Publisher, message.Subscriber) {
				return group(t, "g")
			}, group)
		})
	}
}
