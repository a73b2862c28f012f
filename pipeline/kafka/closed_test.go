package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// TestNotStarted uses a transport that was never started: it refuses, and closes.
func TestNotStarted(t *testing.T) {
	tr, err := kafka.New(kafka.Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	m := flow.Message{ID: "m", Topic: "in", Key: "k", Type: "test.v1"}
	_, subscribed := tr.Subscriber("g").Subscribe(ctx, "in")
	_, tailed := tr.Tail(ctx, "in")
	for name, err := range map[string]error{
		"Publish": tr.Publish(ctx, m), "Post": tr.Poster("g", "in").Post(ctx, m), "Subscribe": subscribed, "Tail": tailed,
	} {
		if !errors.Is(err, kafka.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, kafka.ErrClosed)
		}
	}
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// TestCloseWhilePublishing closes a transport into which many publish, one message at a time
// and several: they get an error, and nothing panics.
func TestCloseWhilePublishing(t *testing.T) {
	brokers := brokers(t)
	for range 4 {
		tr := open(t, brokers, "closing-"+rand.Text()+".", "", map[string]flow.Topic{"in": {}})
		var begun, ended sync.WaitGroup
		for g := range 16 {
			begun.Add(1)
			ended.Go(func() {
				once := sync.OnceFunc(begun.Done)
				defer once()
				for n := 0; ; n++ {
					ms := []flow.Message{{ID: fmt.Sprint(g, ".", n), Topic: "in", Key: fmt.Sprint("k", n), Type: "test.v1"}}
					if g%2 == 0 {
						ms = append(ms, flow.Message{ID: ms[0].ID + "b", Topic: "in", Key: "b", Type: "test.v1"})
					}
					if err := tr.Publish(context.Background(), ms...); err != nil {
						if !errors.Is(err, kafka.ErrClosed) {
							t.Error(err)
						}
						return
					}
					once()
				}
			})
		}
		begun.Wait()
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		ended.Wait()
	}
}
