package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestFencedLanes takes the transactional IDs of all lanes away, as another process does that
// believes to own them, and as an attempt to open one does that was given up: the lanes are
// taken back before sarama would tell, which is after a minute.
func TestFencedLanes(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	var logged kafkatest.Log
	c.Lanes, c.Logger, c.Topics = testLanes, logged.Logger(), map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}
	tr := opened(t, c)
	count(t, tr, "g", "in")
	<-tr.Gained()
	for lane := range testLanes {
		conf, err := c.admin().TxnConfig(fmt.Sprintf("%s-%d", c.Group, lane))
		if err != nil {
			t.Fatal(err)
		}
		p, err := sarama.NewSyncProducer(c.Brokers, conf)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
	}
	for i := range testLanes * 4 {
		key := fmt.Sprint("k", i)
		if err := tr.Publish(context.Background(), flow.Message{ID: key, Topic: "in", Key: key, Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
	}
	got := results(t, c.Brokers, c.Prefix, testLanes*4)
	if len(got) != testLanes*4 {
		t.Errorf("%d keys were handled, want %d", len(got), testLanes*4)
	}
	for key, v := range got {
		if v != key+" " {
			t.Errorf("%s: handled %q, want once", key, v)
		}
	}
	kafkatest.Mention(t, logged.String(), "another producer has its transactional ID now")
}

// TestStuckTransaction has a producer whose transaction does not end: its lane is taken again, and
// the messages of the transaction are handled again, once. The transaction is not committed when
// it continues.
func TestStuckTransaction(t *testing.T) {
	t.Parallel()
	t.Run("while brokers answer", func(t *testing.T) { stuck(t, true) })
	t.Run("whatever they do", func(t *testing.T) { stuck(t, false) })
}

func stuck(t *testing.T, answering bool) {
	cluster := kafkatest.Cluster(t)
	brokers, prefix := cluster.ListenAddrs(), kafkatest.Prefix()
	tr, err := New(Config{Brokers: brokers, Prefix: prefix, Lanes: testLanes})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(func() {
		goOn()
		_ = tr.Close()
	})
	if answering {
		tr.answeredFor = time.Millisecond
	} else {
		tr.transactFor = time.Millisecond
	}
	err = tr.Start(context.Background(), flow.Wiring{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}})
	if err != nil {
		t.Fatal(err)
	}
	<-tr.Gained() // the lanes are taken: further transactions commit messages
	var hung atomic.Bool
	woken := make(chan struct{})
	cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		if hung.CompareAndSwap(false, true) {
			cluster.SleepControl(func() { <-release })
			close(woken)
		}
		return nil, nil, false
	})
	count(t, tr, "g", "in")
	publish := func(key string) {
		t.Helper()
		if err := tr.Publish(context.Background(), flow.Message{ID: key, Topic: "in", Key: key, Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range testLanes * 4 {
		publish(string(rune('a' + i)))
	}
	handled := func(n int) {
		t.Helper()
		got := results(t, brokers, prefix, n)
		if len(got) != n {
			t.Errorf("%d keys were handled, want %d", len(got), n)
		}
		for key, v := range got {
			if v != key+" " {
				t.Errorf("%s: handled %q, want once", key, v)
			}
		}
	}
	handled(testLanes * 4)
	if !hung.Load() {
		t.Fatal("no transaction hung")
	}
	goOn()
	<-woken
	publish("last") // its transaction ends behind the one that hung
	handled(testLanes*4 + 1)
}

// TestLargeRecord emits a message that is larger than the brokers take, but packs well.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		tr := sharing(t, c.Brokers, c.Prefix, "", map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}})
		body := []byte(strings.Repeat("in stock, out of stock, ", 15<<20/24))
		ms, err := tr.Subscriber("g").Subscribe(context.Background(), "in")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for m := range ms {
				tx, _ := flow.TxFrom(m.Context())
				tx.Emit(flow.Message{ID: m.UUID, Topic: "out", Key: "k", Type: "test.v1", Body: body})
				if err := tx.Fits(); err != nil {
					t.Error(err)
				}
				m.Ack()
			}
		}()
		if err := tr.Publish(context.Background(), flow.Message{ID: "x", Topic: "in", Key: "k", Type: "test.v1"}); err != nil {
			t.Fatal(err)
		}
		if got := results(t, c.Brokers, c.Prefix, 1); got["k"] != string(body) {
			t.Errorf("got %d bytes, want %d", len(got["k"]), len(body))
		}
	})
}
