package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/flow"
)

// waitTimeout is how long the suites wait for what must come. A correct transport never needs all of it.
var waitTimeout = 30 * time.Second

// shortDelay is how far ahead wakes are set.
const shortDelay = 20 * time.Millisecond

// handler is what the suite's consumers do.
type handler func(ctx context.Context, tx flow.Tx, m flow.Message) error

// consume handles what group gets from topic, each message in a goroutine of its own, as
// Watermill's router does. It ends with stop or with the test.
func consume(t *testing.T, tr flow.Transport, group, topic string, h handler) (stop func()) {
	t.Helper()
	sub := tr.Subscriber(group)
	messages, err := sub.Subscribe(context.Background(), topic)
	if err != nil {
		t.Fatalf("Subscribe(%s): %v", topic, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for msg := range messages {
			wg.Go(func() {
				if callHandler(t, topic, msg, h) != nil {
					msg.Nack()
					return
				}
				msg.Ack()
			})
		}
		wg.Wait()
	}()
	stop = sync.OnceFunc(func() {
		if err := sub.Close(); err != nil {
			t.Errorf("closing a subscriber: %v", err)
		}
		<-done
	})
	t.Cleanup(stop)
	return stop
}

func callHandler(t *testing.T, topic string, msg *message.Message, h handler) error {
	tx, ok := flow.TxFrom(msg.Context())
	if !ok {
		t.Error("the context of a message carries no transaction")
		return nil
	}
	m, err := tx.Message()
	if err != nil {
		t.Errorf("Message: %v", err)
		return nil
	}
	if m.Topic != topic || m.ID != msg.UUID {
		t.Errorf("the transaction has message %s of %s, Watermill's is %s of %s", m.ID, m.Topic, msg.UUID, topic)
	}
	return h(msg.Context(), tx, m)
}

// mustClose closes c, which must not fail.
func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// receive receives from ch, and fails the test after waitTimeout.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("nothing came: %s", what)
		panic("unreachable")
	}
}

// signal sends to ch if it has room.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// waitForRelease holds a handler until ch is closed or gives something.
func waitForRelease(t *testing.T, ch <-chan struct{}) error {
	t.Helper()
	select {
	case <-ch:
		return nil
	case <-time.After(waitTimeout):
		t.Error("a handler was held too long")
		return nil
	}
}

// waitUntilIdle waits until tr is idle, and checks that cond, if it is not nil, becomes true.
func waitUntilIdle(t *testing.T, tr flow.Transport, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); !tr.Idle() || (cond != nil && !cond()); {
		if time.Now().After(end) {
			t.Fatal("the transport does not come to rest")
		}
		time.Sleep(time.Millisecond)
	}
}

// testMessage makes a message whose body is its ID.
func testMessage(topic, key, id string) flow.Message {
	return flow.Message{ID: id, Topic: topic, Key: key, Type: "test.v1", Body: []byte(id)}
}

// mustPublish publishes ms, and fails the test if that fails.
func mustPublish(t *testing.T, tr flow.Transport, ms ...flow.Message) {
	t.Helper()
	if err := tr.Publish(context.Background(), ms...); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// numberedMessages makes n messages of one key: KEY.0, KEY.1 ...
func numberedMessages(topic, key string, n int) []flow.Message {
	var ms []flow.Message
	for i := range n {
		ms = append(ms, testMessage(topic, key, fmt.Sprintf("%s.%d", key, i)))
	}
	return ms
}

// messageIDs returns the IDs of ms.
func messageIDs(ms []flow.Message) []string {
	var ids []string
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	return ids
}

// mustGet reads a value, and reports an error if that fails.
func mustGet(t *testing.T, s flow.State, name string) string {
	t.Helper()
	v, _, err := s.Get(name)
	if err != nil {
		t.Errorf("Get(%s): %v", name, err)
	}
	return string(v)
}

// journal records by key which messages came, in their order.
type journal struct {
	mu    sync.Mutex
	byKey map[string][]string
}

func (j *journal) add(key, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byKey == nil {
		j.byKey = map[string][]string{}
	}
	j.byKey[key] = append(j.byKey[key], id)
}

func (j *journal) ids(key string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.byKey[key])
}

// want checks that the messages of key are ids, in this order.
func (j *journal) want(t *testing.T, key string, ids ...string) {
	t.Helper()
	if got := j.ids(key); !slices.Equal(got, ids) {
		t.Errorf("of %q came %v, want %v", key, got, ids)
	}
}

// recordTopic makes group consume topic, and records the messages under the name of the topic.
func recordTopic(t *testing.T, tr flow.Transport, group, topic string) *journal {
	t.Helper()
	j := &journal{}
	consume(t, tr, group, topic, func(_ context.Context, _ flow.Tx, m flow.Message) error {
		j.add(topic, m.ID)
		return nil
	})
	return j
}

// testTail listens to an ephemeral topic that no group reads, where the transport tells what
// other processes publish: it hears what was committed, once the state can be read, and what
// came from outside of a handler.
func testTail(t *testing.T, _ Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "told": {Feedback: true, Ephemeral: true}}})
	mustPublish(t, tr, testMessage("told", "k", "too early"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told, err := tr.Tail(ctx, "told")
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		attempts++
		tx.Sync()
		tx.Emit(testMessage("told", m.Key, fmt.Sprint("attempt", attempts)))
		if err := tx.State(m.Key).Set("attempt", fmt.Append(nil, attempts)); err != nil {
			return err
		}
		if attempts < 3 {
			return errors.New("rejected")
		}
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"))
	m := receive(t, told, "what a handler published")
	if m.ID != "attempt3" || m.Topic != "told" || m.Type != "test.v1" || string(m.Body) != m.ID {
		t.Errorf("heard %+v, want what the attempt published that was committed", m)
	}
	if got := mustGet(t, tr.State("g", "k"), "attempt"); got != "3" {
		t.Errorf("the state is %q when its message is heard", got)
	}
	mustPublish(t, tr, testMessage("told", "other", "outside"))
	if m := receive(t, told, "what was published outside"); m.ID != "outside" {
		t.Errorf("heard %s, want what was published outside", m.ID)
	}
	cancel()
	if m, more := <-told; more {
		t.Errorf("heard %s after the end", m.ID)
	}
}
