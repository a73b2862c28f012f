package vokter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// failingProcessor is a Processor that emits and then answers with its errors in turn, and with
// nil when they are used up.
type failingProcessor struct {
	errs []error
	n    int
}

func (a *failingProcessor) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	a.n++
	tx.Emit(flow.Message{ID: fmt.Sprint("out", a.n), Topic: "t", Key: m.Key})
	if len(a.errs) == 0 {
		return nil
	}
	err := a.errs[0]
	a.errs = a.errs[1:]
	return err
}

// handle runs p with the middleware of a stage, and returns what was emitted, the pauses
// and the error.
func handle(ctx context.Context, p flow.Processor) (out []flow.Message, pauses []time.Duration, err error) {
	log := slog.New(slog.DiscardHandler)
	sleep := func(ctx context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return context.Cause(ctx)
	}
	now := func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }
	s := txtest.New()
	p = traceMessages("g", span.Tracer{})(moveToDeadLetters("g", log, now)(retryFailures(log, sleep)(recoverPanics(log)(p))))
	err = s.Handle(ctx, p, flow.Message{ID: "m", Topic: "in", Key: "k", Type: "x", Body: []byte("body")})
	return s.Take(), pauses, err
}

func TestRetries(t *testing.T) {
	oops := errors.New("oops")
	for _, c := range []struct {
		name   string
		errs   []error
		pauses []time.Duration
		dead   string // reason of the dead letter
	}{
		{name: "no error"},
		{name: "twice", errs: []error{oops, oops}, pauses: retryDelays[:2]},
		{name: "for ever", errs: []error{oops, oops, oops, oops, oops, oops, oops}, pauses: retryDelays, dead: "oops"},
		{name: "permanent", errs: []error{failure.Permanent(oops)}, dead: "oops"},
		{name: "later permanent", errs: []error{oops, failure.Permanent(oops)}, pauses: retryDelays[:1], dead: "oops"},
		{name: "a wish", errs: []error{failure.RetryAfter(oops, 300*time.Millisecond)}, pauses: []time.Duration{300 * time.Millisecond}},
		{name: "a wish that would hold the lane", errs: []error{failure.RetryAfter(oops, time.Hour)}, pauses: []time.Duration{2 * time.Second}},
	} {
		a := &failingProcessor{errs: c.errs}
		out, pauses, err := handle(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if fmt.Sprint(pauses) != fmt.Sprint(c.pauses) {
			t.Errorf("%s: pauses %v, want %v", c.name, pauses, c.pauses)
		}
		if len(out) != 1 {
			t.Errorf("%s: emitted %v, want what one attempt emitted, or its dead letter", c.name, out)
			continue
		}
		if c.dead == "" {
			if out[0].ID != fmt.Sprint("out", a.n) {
				t.Errorf("%s: emitted %s after %d attempts", c.name, out[0].ID, a.n)
			}
			continue
		}
		var d flow.DeadLetter
		if err := json.Unmarshal(out[0].Body, &d); err != nil || out[0].Topic != flow.TopicDead || d.Reason != c.dead || d.Group != "g" || d.Topic != "in" || d.Attempts != a.n || string(d.Body) != "body" || d.Headers["ce_id"] != "m" {
			t.Errorf("%s: dead letter %+v, %v", c.name, d, err)
		}
	}
}

func TestBrokenOffWorkIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"canceled": context.Canceled, "wrapped": fmt.Errorf("reading: %w", context.Canceled),
		"any error once the context is done": errors.New("oops"),
	} {
		out, _, got := handle(ctx, &failingProcessor{errs: []error{err}})
		if got == nil || len(out) != 0 {
			t.Errorf("%s: emitted %v and returned %v, want the message to come again", name, out, got)
		}
	}
}

func TestPanicIsPermanent(t *testing.T) {
	out, pauses, err := handle(t.Context(), flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error { panic("boo") }))
	if err != nil || len(pauses) != 0 || len(out) != 1 || !strings.Contains(string(out[0].Body), "panic: boo") {
		t.Errorf("emitted %v after %v, %v, want one dead letter with the panic", out, pauses, err)
	}
}

func TestTraceIsPassedOn(t *testing.T) {
	emit := func(trace string) flow.Processor {
		return flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, _ flow.Message) error {
			tx.Emit(flow.Message{ID: "o", Topic: "t", Trace: trace})
			tx.EmitAll(flow.Message{ID: "o", Topic: "t", Trace: trace})
			return nil
		})
	}
	for _, c := range []struct{ in, own, want string }{
		{"00-aa-bb-01", "", "00-aa-bb-01"},
		{"", "", flow.TraceParent("m")},
		{"00-aa-bb-01", "00-cc-dd-01", "00-cc-dd-01"},
	} {
		m := flow.Message{ID: "m", Key: "k", Trace: c.in}
		s := txtest.New()
		if err := s.Handle(t.Context(), traceMessages("g", span.Tracer{})(emit(c.own)), m); err != nil {
			t.Fatal(err)
		}
		out := s.Take()
		if len(out) != 2 || out[1].ID == "o" {
			t.Fatalf("emitted %v, want a message and its copy in the only lane", out)
		}
		for _, m := range out {
			if m.Trace != c.want {
				t.Errorf("in %q own %q: trace %q, want %q", c.in, c.own, m.Trace, c.want)
			}
		}
	}
}

// TestDeadLetterWithoutAKey: what has no key is given up under its ID, since a key has one lane.
func TestDeadLetterWithoutAKey(t *testing.T) {
	now := func() time.Time { return time.Time{} }
	fails := flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error {
		return failure.Permanent(errors.New("oops"))
	})
	for key, want := range map[string]string{"": "m", "k": "k"} {
		s := txtest.New()
		p := moveToDeadLetters("g", slog.New(slog.DiscardHandler), now)(fails)
		if err := s.Handle(t.Context(), p, flow.Message{ID: "m", Topic: "in", Key: key, Type: "x"}); err != nil {
			t.Fatal(err)
		}
		if out := s.Take(); len(out) != 1 || out[0].Key != want {
			t.Errorf("of a message with the key %q: got %v, want the key %q", key, out, want)
		}
	}
}

// TestHandingOver: a request for a host of this process reaches fetch after the commit, with the trace
// of the message that caused it, and in no other way. Others are published.
func TestHandingOver(t *testing.T) {
	var taken []string
	take := func(m flow.Message) { taken = append(taken, m.Key+" "+m.Trace) }
	owns := func(key string) bool { return key == "mine.example" }
	fail := errors.New("no")
	asks := flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, _ flow.Message) error {
		tx.Emit(flow.Message{ID: "1", Topic: flow.TopicRequests, Key: "mine.example"})
		tx.Emit(flow.Message{ID: "2", Topic: flow.TopicRequests, Key: "other.example"})
		tx.Emit(flow.Message{ID: "3", Topic: flow.TopicSnapshots, Key: "mine.example"})
		if len(taken) > 0 {
			t.Errorf("%q were taken before the commit", taken)
		}
		return fail
	})
	p := handOverRequests(owns, take)(traceMessages("g", span.Tracer{})(asks))
	s := txtest.New()
	m := flow.Message{ID: "m", Key: "k", Trace: "00-aa-bb-01"}
	if err := s.Handle(t.Context(), p, m); !errors.Is(err, fail) || len(taken) > 0 {
		t.Fatalf("got %v, and %q were taken; want %v and none", err, taken, fail)
	}
	fail = nil
	if err := s.Handle(t.Context(), p, m); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mine.example 00-aa-bb-01"}; !slices.Equal(taken, want) {
		t.Errorf("%q were taken, want %q", taken, want)
	}
	var emitted []string
	for _, m := range s.Take() {
		emitted = append(emitted, m.ID)
	}
	if want := []string{"2", "3"}; !slices.Equal(emitted, want) {
		t.Errorf("emitted %q, want %q", emitted, want)
	}
}
