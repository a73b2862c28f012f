package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	c.Lanes, c.Logger = testLanes, logged.Logger()
	tr := openTransportWith(t, c, flow.Wiring{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}}})
	countMessages(t, tr, "g", "in")
	<-tr.Gained()
	for lane := range testLanes {
		conf, err := c.adminConfig().TxnConfig(fmt.Sprintf("%s-%d", c.Group, lane))
		if err != nil {
			t.Fatal(err)
		}
		newProducer(t, c.Brokers, conf)
	}
	publishKeys(t, tr, testLanes*4)
	wantHandledOnce(t, c.Brokers, c.Prefix, testLanes*4)
	kafkatest.Mention(t, logged.String(), "another producer has its transactional ID now")
}

// TestStuckTransaction has a producer whose transaction does not end: its lane is taken again, and
// the messages of the transaction are handled again, once. The transaction is not committed when
// it continues.
func TestStuckTransaction(t *testing.T) {
	t.Parallel()
	t.Run("while brokers answer", func(t *testing.T) { testStuckTransaction(t, true) })
	t.Run("whatever they do", func(t *testing.T) { testStuckTransaction(t, false) })
}

func testStuckTransaction(t *testing.T, answering bool) {
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
		tr.answeredTxnTimeout = time.Millisecond
	} else {
		tr.txnTimeout = time.Millisecond
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
	countMessages(t, tr, "g", "in")
	publishKeys(t, tr, testLanes*4)
	wantHandledOnce(t, brokers, prefix, testLanes*4)
	if !hung.Load() {
		t.Fatal("no transaction hung")
	}
	goOn()
	<-woken
	publish(t, tr, "in", "last", "last") // its transaction ends behind the one that hung
	wantHandledOnce(t, brokers, prefix, testLanes*4+1)
}

// wantHandledOnce fails t unless one message of each of n keys was handled, once.
func wantHandledOnce(t *testing.T, brokers []string, prefix string, n int) {
	t.Helper()
	got := readResults(t, brokers, prefix, n)
	if len(got) != n {
		t.Errorf("%d keys were handled, want %d", len(got), n)
	}
	for key, v := range got {
		if v != key+" " {
			t.Errorf("%s: handled %q, want once", key, v)
		}
	}
}

// TestLargeRecord emits a message that is larger than the brokers take, but packs well.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		tr := openSharing(t, c.Brokers, c.Prefix, "", map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}})
		body := []byte(strings.Repeat("in stock, out of stock, ", 15<<20/24))
		ms := subscribe(t, tr, "g", "in")
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
		publish(t, tr, "in", "k", "x")
		if got := readResults(t, c.Brokers, c.Prefix, 1); got["k"] != string(body) {
			t.Errorf("got %d bytes, want %d", len(got["k"]), len(body))
		}
	})
}
