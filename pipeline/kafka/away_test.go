package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestBrokersAway: that brokers went away while the Transport works is what Ready says, and one
// warning.
func TestBrokersAway(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var logged kafkatest.Log
	c := testConfig(cluster.ListenAddrs())
	c.Topics, c.Logger = movedTopics, logged.Logger()
	tr, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	<-tr.Gained()
	cluster.Close()
	for tr.Ready() == nil && t.Context().Err() == nil {
	}
	ready := tr.Ready()
	if err := tr.Close(); err != nil {
		t.Logf("closing without brokers: %v", err)
	}
	kafkatest.Mention(t, ready.Error(), "kafka: ", "(for ")
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, logged.String())
	}
}

// TestPublishToNewTopicWhileAway publishes to topics that nobody declared while brokers are
// away: each call ends with its context, also while another one makes the topic.
func TestPublishToNewTopicWhileAway(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	tr, err := Open(t.Context(), testConfig(cluster.ListenAddrs()))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	<-tr.Gained()
	cluster.Close()
	patient, end := context.WithCancel(t.Context())
	defer end()
	published := make(chan error, 1)
	go func() {
		published <- tr.Publish(patient, flow.Message{ID: "1", Topic: "new", Key: "k", Type: "test.v1"})
	}()
	for began := time.Now(); len(tr.making) == 0; {
		select {
		case err := <-published:
			t.Fatalf("Publish returned %v while brokers are away", err)
		case <-time.After(time.Millisecond):
			if time.Since(began) > guard {
				t.Fatal("Publish does not try to make the topic")
			}
		}
	}
	over := errors.New("over")
	for _, topic := range []string{"new", "other"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- tr.Publish(ctx, flow.Message{ID: "2", Topic: topic, Key: "k", Type: "test.v1"}) }()
		cancel(over)
		select {
		case err := <-done:
			if !errors.Is(err, over) {
				t.Errorf("got %v, want the cause of the context", err)
			}
		case <-time.After(guard):
			t.Fatal("Publish does not end with its context")
		}
		end()
	}
}
