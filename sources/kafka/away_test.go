package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/kafka"
)

// guard is how long a test waits for what comes at once.
const guard = 20 * time.Second

// TestEndsWhileConnecting has a broker that takes connections and never answers.
func TestEndsWhileConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan struct{})
	var hold sync.WaitGroup
	hold.Go(func() {
		for once := sync.OnceFunc(func() { close(connected) }); ; once() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		hold.Wait()
	})
	endsAfter(t, []string{l.Addr().String()}, connected)
}

// TestEndsWhileBrokersAreSilent has a broker that stops answering a member of the group.
func TestEndsWhileBrokersAreSilent(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "pages"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	silent, release := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(silent)
		<-release // nothing is answered meanwhile
		return nil, nil, false
	})
	t.Cleanup(func() { close(release) })
	endsAfter(t, c.ListenAddrs(), silent)
}

// endsAfter holds a source to it that it ends when its context is cancelled after a signal.
func endsAfter(t *testing.T, brokers []string, signal <-chan struct{}) {
	t.Helper()
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		src := kafka.New(kafka.Config{Brokers: brokers, Topic: "pages"})
		ended <- src.Run(ctx, func(context.Context, pipeline.Pushed) error { return nil })
	}()
	select {
	case <-signal:
	case err := <-ended:
		t.Fatalf("Run returned %v", err)
	case <-time.After(guard):
		t.Fatal("no broker was asked")
	}
	cancel(over)
	select {
	case err := <-ended:
		if !errors.Is(err, over) {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
	case <-time.After(guard):
		t.Error("Run does not end with its context")
	}
}
