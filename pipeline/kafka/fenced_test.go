package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestFencedLanes takes the transactional IDs of all lanes away, as another process does that
// believes to own them, and as an attempt to open one does that was given up: the lanes are
// taken back before sarama would tell, which is after a minute.
func TestFencedLanes(t *testing.T) {
	brokers, name := brokers(t), "fenced-"+rand.Text()
	var mu sync.Mutex
	var logged strings.Builder
	tr, err := kafka.Open(context.Background(), kafka.Config{
		Brokers: brokers, Prefix: name + ".", Lanes: testLanes, Replication: 1,
		Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {}},
		Logger: slog.New(slog.NewTextHandler(writer(func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			logged.Write(b)
		}), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	count(t, tr, "g", "in")
	<-tr.Gained()
	for lane := range testLanes {
		c := sarama.NewConfig()
		c.Version, c.Net.MaxOpenRequests = sarama.V2_8_0_0, 1
		c.Producer.Idempotent, c.Producer.RequiredAcks, c.Producer.Return.Successes = true, sarama.WaitForAll, true
		c.Producer.Transaction.ID = fmt.Sprint(name, "-", lane)
		p, err := sarama.NewSyncProducer(brokers, c)
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
	got := results(t, brokers, name+".", testLanes*4)
	if len(got) != testLanes*4 {
		t.Errorf("%d keys were handled, want %d", len(got), testLanes*4)
	}
	for key, v := range got {
		if v != key+" " {
			t.Errorf("%s: handled %q, want once", key, v)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "another producer has its transactional ID now"; !strings.Contains(logged.String(), want) {
		t.Errorf("logged %s\nwithout %q", logged.String(), want)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
