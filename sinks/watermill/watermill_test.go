package watermill_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	sink "github.com/vokter/vokter/sinks/watermill"
	"github.com/vokter/vokter/test/beside"
)

const topic = "alerts"

// testReceiver takes what is published, and acknowledges it unless it is held.
type testReceiver struct {
	message.Publisher

	mu     sync.Mutex
	got    []*message.Message
	failed error
	// held is taken by the next message that is not acknowledged.
	held chan hold
}

type hold struct{ began, released chan struct{} }

// newReceiver starts a receiver at a Pub/Sub of Watermill in this process, whose publisher
// waits until what it publishes is acknowledged.
func newReceiver(t testing.TB) *testReceiver {
	t.Helper()
	pubsub := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	messages, err := pubsub.Subscribe(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	r := &testReceiver{Publisher: pubsub, held: make(chan hold, 1)}
	var ended sync.WaitGroup
	ended.Go(func() {
		for m := range messages {
			r.receive(m)
		}
	})
	t.Cleanup(func() {
		if err := pubsub.Close(); err != nil {
			t.Error(err)
		}
		ended.Wait()
	})
	return r
}

func (r *testReceiver) receive(m *message.Message) {
	select {
	case h := <-r.held:
		close(h.began)
		<-h.released
	default:
	}
	r.mu.Lock()
	r.got = append(r.got, m)
	r.mu.Unlock()
	m.Ack()
}

// Publish fails if it was told to.
func (r *testReceiver) Publish(topic string, messages ...*message.Message) error {
	r.mu.Lock()
	failed := r.failed
	r.mu.Unlock()
	if failed != nil {
		return failed
	}
	return r.Publisher.Publish(topic, messages...)
}

func (r *testReceiver) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
}

func TestConformance(t *testing.T) {
	pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
		r := newReceiver(t)
		return pipelinetest.SinkFake{
			Sink: newSink(t, r),
			Got: func() []pipelinetest.Arrived {
				r.mu.Lock()
				defer r.mu.Unlock()
				var all []pipelinetest.Arrived
				for _, m := range r.got {
					var n pipeline.Notification
					if err := json.Unmarshal(m.Payload, &n); err != nil {
						t.Fatal(err)
					}
					if n.ID != m.UUID || m.Metadata["ce_id"] != n.ID {
						t.Errorf("the UUID is %q, the metadata are %v, of %q", m.UUID, m.Metadata, n.ID)
					}
					a := pipelinetest.Arrived{ID: m.UUID}
					for _, d := range n.Diffs {
						a.Texts = append(a.Texts, d.Text)
					}
					all = append(all, a)
				}
				return all
			},
			Hold: func() (<-chan struct{}, func()) {
				h := hold{make(chan struct{}), make(chan struct{})}
				r.held <- h
				return h.began, sync.OnceFunc(func() { close(h.released) })
			},
			Faults: map[string]pipelinetest.SinkFault{
				"any":             {Arrange: func() { r.fail(errors.New("the broker is away")) }, Ambiguous: true},
				"told by a class": {Arrange: func() { r.fail(failure.Refused(errors.New("too large"))) }, Class: failure.ClassRefused, Ambiguous: true},
			},
		}
	})
}

func TestMetadata(t *testing.T) {
	r := newReceiver(t)
	n := pipeline.Notification{ID: "N", Type: pipeline.NotificationType, URL: "https://example.com/", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := newSink(t, r).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ce_id": "N", "ce_type": flow.TypeNotification, "ce_source": flow.SourceVokter, "ce_specversion": "1.0",
		"ce_subject": "https://example.com/", "ce_time": "2026-01-02T03:04:05Z", "content-type": "application/json",
		"ce_dataschema": "https://github.com/vokter/vokter/blob/main/docs/schemas/vokter.notification.v1.json",
	}
	got := r.got[0].Metadata
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// newSink returns the sink that publishes with p.
func newSink(t testing.TB, p message.Publisher) *sink.Sink {
	t.Helper()
	s, err := sink.New(sink.Config{Publisher: p, Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatItNeeds(t *testing.T) {
	r := newReceiver(t)
	for _, c := range []sink.Config{{Topic: topic}, {Publisher: r}} {
		if s, err := sink.New(c); err == nil || s != nil {
			t.Errorf("%+v: got %v and %v, want what is missing", c, s, err)
		}
	}
	err := newSink(t, r).Deliver(t.Context(), pipeline.Notification{})
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
		t.Errorf("without an ID: got %v, want a permanent error", err)
	}
}

// BenchmarkDeliver publishes notifications with the sink, and in turn finished payloads with
// the publisher alone.
func BenchmarkDeliver(b *testing.B) {
	n := pipeline.Notification{
		ID: "N", Type: pipeline.NotificationType, URL: "https://example.com/", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "... Argus' wakeful alertness ..."}},
	}
	s, r := newSink(b, newReceiver(b)), newReceiver(b)
	e, err := flow.CloudEvent(n)
	if err != nil {
		b.Fatal(err)
	}
	beside.Run(b, 1, func() error { return s.Deliver(b.Context(), n) }, func() error {
		m := message.NewMessage("N", e.Body)
		m.Metadata = e.Metadata()
		return r.Publish(topic, m)
	})
}
