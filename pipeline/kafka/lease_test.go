package kafka

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/test/kafkatest"
)

// testTimeout is how long a test waits for what comes within seconds.
const testTimeout = 30 * time.Second

// openUnacknowledged returns a transport of two lanes in which two subscriptions share what "g" consumes,
// and the first one has a message of each lane that it never acknowledges.
func openUnacknowledged(t *testing.T) (tr *Transport, first message.Subscriber) {
	t.Helper()
	c := testConfig(kafkatest.Start(t))
	c.Lanes = 2
	tr = openTransport(t, c)
	tr.subs.Grace = time.Millisecond
	<-tr.Gained()
	first = tr.Subscriber("g")
	ms, err := first.Subscribe(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	publishKeys(t, tr, 16)
	for range tr.lanes {
		<-ms
	}
	subscribe(t, tr, "g", "in")
	return tr, first
}

// TestCloseAfterLanesMoved closes a subscription that has messages of lanes in flight which
// another one serves now.
func TestCloseAfterLanesMoved(t *testing.T) {
	t.Parallel()
	_, first := openUnacknowledged(t)
	closed := make(chan error, 1)
	go func() { closed <- first.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Fatal("the subscription does not close")
	}
}

// TestLeaseEndsAfterLanesMoved gives up lanes of which a subscription has messages in flight
// that does not serve them any more.
func TestLeaseEndsAfterLanesMoved(t *testing.T) {
	t.Parallel()
	tr, _ := openUnacknowledged(t)
	var before []*lease
	for lane := range tr.slots {
		before = append(before, tr.lease(lane))
	}
	for _, n := range before {
		n.fail(errors.New("a test"))
	}
	for lane, n := range before {
		for now := tr.lease(lane); now == nil || now == n; now = tr.lease(lane) {
			select {
			case <-tr.Gained():
			case <-time.After(testTimeout):
				t.Fatal("the lanes are not taken again")
			}
		}
	}
}
