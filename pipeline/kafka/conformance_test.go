package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/kafkatest"
)

func TestTransport(t *testing.T) {
	t.Parallel()
	f := pipelinetest.Features{Lanes: testLanes, Unbounded: true, Shared: true}
	onBoth(t, func(t *testing.T, c Config) {
		pipelinetest.TestTransport(t, f, func(t *testing.T) pipelinetest.Site {
			t.Parallel()
			return &fixture{brokers: c.Brokers, prefix: c.Prefix + rand.Text() + ".", dir: t.TempDir()}
		})
	})
}

// fixture opens transports on topics of its own.
type fixture struct {
	brokers     []string
	prefix, dir string
}

func (s *fixture) Open(t *testing.T, c pipelinetest.Config) flow.Transport {
	t.Helper()
	tr, err := startTransport(t.Context(), Config{
		Brokers: s.brokers, Prefix: s.prefix, Lanes: testLanes, Now: c.Now, SessionTimeout: 6 * time.Second, Logger: warnLogger(t),
	}, flow.Wiring{Dir: s.dir, Topics: c.Topics, Unhandled: c.Unhandled})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, tr) })
	<-tr.Gained()
	return tr
}

// warnLogger returns a logger of warnings to the log of t.
func warnLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// TestWatermill runs Watermill's own suite with 8 lanes.
func TestWatermill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		c.Lanes, c.SessionTimeout, c.MaxPause, c.Logger = testLanes, 6*time.Second, 10*time.Millisecond, warnLogger(t)
		tr := openTransport(t, c)
		<-tr.Gained()
		pipelinetest.TestWatermill(t, tr)
	})
}

// TestNotStarted uses a transport that was never started: it refuses, and closes.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	tr, err := New(Config{Brokers: []string{"127.0.0.1:1"}})
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
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, ErrClosed)
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
	brokers := kafkatest.Start(t)
	for range 4 {
		tr := openSharing(t, brokers, kafkatest.Prefix(), "", map[string]flow.Topic{"in": {}})
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
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					once()
				}
			})
		}
		begun.Wait()
		mustClose(t, tr)
		ended.Wait()
	}
}
