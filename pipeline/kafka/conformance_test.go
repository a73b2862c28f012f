package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

const testLanes = 8

// brokers returns those of an in-process cluster.
func brokers(t testing.TB) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// realBrokers returns those that VOKTER_KAFKA names.
func realBrokers(t *testing.T) []string {
	t.Helper()
	list := os.Getenv("VOKTER_KAFKA")
	if list == "" {
		t.Skip("VOKTER_KAFKA does not name the brokers of a Kafka cluster")
	}
	return strings.Split(list, ",")
}

func TestTransport(t *testing.T) {
	t.Parallel()
	f := pipelinetest.Features{Lanes: testLanes, Unbounded: true, Shared: true}
	run := func(t *testing.T, brokers []string) {
		pipelinetest.TestTransport(t, f, func(t *testing.T) pipelinetest.Site {
			t.Parallel()
			return &site{brokers: brokers, prefix: "test-" + rand.Text() + ".", dir: t.TempDir()}
		})
	}
	t.Run("kfake", func(t *testing.T) { run(t, brokers(t)) })
	t.Run("real", func(t *testing.T) { run(t, realBrokers(t)) })
}

// site opens transports on topics of its own.
type site struct {
	brokers     []string
	prefix, dir string
}

func (s *site) Open(t *testing.T, c pipelinetest.Config) flow.Transport {
	t.Helper()
	tr, err := kafka.Open(context.Background(), kafka.Config{
		Brokers: s.brokers, Prefix: s.prefix, Lanes: testLanes, Replication: 1, Dir: s.dir, Topics: c.Topics, Now: c.Now, SessionTimeout: 6 * time.Second,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	<-tr.Gained()
	return tr
}

// testWriter writes log lines to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// TestWatermill runs Watermill's own suite with 8 lanes.
func TestWatermill(t *testing.T) {
	t.Parallel()
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
		pipelinetest.TestWatermill(t, tr)
	}
	t.Run("kfake", func(t *testing.T) { run(t, brokers(t)) })
	t.Run("real", func(t *testing.T) { run(t, realBrokers(t)) })
}

// TestNotStarted uses a transport that was never started: it refuses, and closes.
func TestNotStarted(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
