package vokter

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// held is a Transport that is closed, but Close of which returns only when it is released.
type held struct {
	*local.Transport
	closed, release chan struct{}
}

func (h held) Close() error {
	err := h.Transport.Close()
	close(h.closed)
	<-h.release
	return err
}

// TestReadsWhileTheTransportCloses: who looks then is told that the Router has stopped.
func TestReadsWhileTheTransportCloses(t *testing.T) {
	transport, err := local.Open(local.Config{Topics: topology(nil)})
	if err != nil {
		t.Fatal(err)
	}
	h := held{transport, make(chan struct{}), make(chan struct{})}
	r, stop := lives(t, Config{Transport: h})
	r.Finish()
	<-h.closed
	ctx, page := t.Context(), "https://example.com/"
	_, list := r.List(ctx, inspect.ListFilter{})
	_, explain := r.Explain(ctx, page, inspect.ExplainFilter{})
	_, letters := r.DeadLetters(ctx, flow.DeadFilter{})
	_, replay := r.Replay(ctx, flow.DeadFilter{})
	for what, err := range map[string]error{
		"List": list, "Explain": explain, "DeadLetters": letters, "Replay": replay,
		"Backup": r.Backup(ctx, new(bytes.Buffer)), "Cancel": r.Cancel(ctx, page, ""),
	} {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%s: %v, want ErrStopped", what, err)
		}
	}
	close(h.release)
	stop()
}

// closing is a sink that counts how often it is closed.
type closing struct {
	pipeline.SinkFunc
	closed *atomic.Int32
}

func (c closing) Close() error { c.closed.Add(1); return nil }

// TestSinksAreClosedHoweverRunEnds: also where delivery never begins.
func TestSinksAreClosedHoweverRunEnds(t *testing.T) {
	dir := t.TempDir()
	_, stop := lives(t, Config{Dir: dir})
	defer stop()
	for name, cfg := range map[string]Config{
		"in order": {}, "in use": {Dir: dir}, "commands": {Mode: ModeCommands}, "deliver": {Mode: ModeDeliver},
	} {
		var n atomic.Int32
		sink := closing{func(context.Context, pipeline.Notification) error { return nil }, &n}
		cfg.Sinks = map[string]pipeline.Sink{"box": pipeline.LimitRate(sink, 1, 1)}
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Finish()
		if err := r.Run(t.Context()); (err != nil) != (name == "in use") {
			t.Errorf("%s: %v", name, err)
		}
		if n.Load() != 1 {
			t.Errorf("%s: closed %d times, want 1", name, n.Load())
		}
	}
}
