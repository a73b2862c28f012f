package vokter

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/test/txtest"
)

// TestSinksForHealthDoNotKeepEachOtherGoing: what is told of one of them to the other is
// itself delivered, and may fail.
func TestSinksForHealthDoNotKeepEachOtherGoing(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"one", "two"} }, now: time.Now}
	store := txtest.New()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		e := pipeline.Health{
			ID: flow.HealthID(pipeline.HealthReceiverFailing, "one", uint64(i)), Event: pipeline.HealthReceiverFailing,
			Time: at.Add(time.Duration(i) * time.Minute), Receiver: &pipeline.Receiver{Sink: "one"},
		}
		if err := store.Handle(t.Context(), h, flow.HealthMessage(e)); err != nil {
			t.Fatal(err)
		}
	}
	if sent := len(store.Take()); sent != 1 {
		t.Errorf("%d notifications of ten events within ten minutes, want 1", sent)
	}
}

// TestRefusalsAreNotSentToSinks refuses a command. Only its sender gets the answer.
func TestRefusalsAreNotSentToSinks(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"ops"} }, now: time.Now}
	store := txtest.New()
	for _, event := range []pipeline.HealthEvent{pipeline.HealthRefused, pipeline.HealthDeadLetter} {
		if err := store.Handle(t.Context(), h, flow.HealthMessage(pipeline.Health{ID: string(event), Event: event})); err != nil {
			t.Fatal(err)
		}
	}
	if sent := store.Take(); len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"status":"dead_letter"`) {
		t.Errorf("sent %+v, want the dead letter alone", sent)
	}
}

// TestUnreadablePagesAreReportedOncePerHour pushes many pages that cannot be read.
func TestUnreadablePagesAreReportedOncePerHour(t *testing.T) {
	h := &healthStage{sinks: func() []string { return []string{"ops"} }, now: time.Now}
	store := txtest.New()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	bad := func(after time.Duration) {
		t.Helper()
		for i := range 100 {
			for _, page := range []string{"https://example.com/a", "https://example.com/b"} {
				e := pipeline.Health{ID: fmt.Sprint(after, i, page), Event: pipeline.HealthDeadLetter, Time: at.Add(after), URL: page}
				if err := store.Handle(t.Context(), h, flow.HealthMessage(e)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if sent := len(store.Take()); sent != 2 {
			t.Errorf("%d notifications of 200 unreadable versions of two pages, want one for each page", sent)
		}
	}
	bad(0)
	for _, m := range store.Due(at.Add(resendAfter)) {
		if err := store.Handle(t.Context(), h, m); err != nil {
			t.Fatal(err)
		}
	}
	if keys := store.Keys(); len(keys) != 0 {
		t.Errorf("%q are remembered for ever", keys)
	}
	bad(resendAfter)
}

// TestForeignHealthStopsNothing: anybody may write to a public topic, but what a newer
// version of this program sent must wait for it.
func TestForeignHealthStopsNothing(t *testing.T) {
	h := &healthStage{sinks: func() []string { return nil }, now: time.Now}
	for typ, want := range map[string]failure.Class{"vokter.surprise.v1": failure.ClassBroken, "com.example.tool.v1": failure.ClassPermanent} {
		err := txtest.New().Handle(t.Context(), h, flow.Message{ID: "1", Key: "k", Type: typ, Source: "https://example.com/"})
		if class, _ := failure.ClassOf(err); class != want {
			t.Errorf("type %q: got %v, want class %v", typ, err, want)
		}
	}
}

// laneWithPages returns what index keeps in a lane in which each page has a subscription to a sink.
func laneWithPages(t *testing.T, sinks map[string]string) *txtest.Store {
	t.Helper()
	kept, stage := txtest.New(), index.New(index.Config{})
	for url, sink := range sinks {
		m, err := newCommand(url, flow.TypeSubscribe, flow.SubscribeCommand{Origin: OriginAPI,
			Subscription: pipeline.Subscription{URL: url, Keywords: []string{"k"}, Sinks: []string{sink}}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		m.Position = "store/documents/0/" + url
		if err := kept.Handle(t.Context(), stage, m); err != nil {
			t.Fatal(err)
		}
	}
	return kept
}

// countedTx counts how often a handler looks at the neighbours.
type countedTx struct {
	*txtest.Tx
	scans *int
}

func (c countedTx) Neighbours(group string) iter.Seq2[string, flow.State] {
	*c.scans++
	return c.Tx.Neighbours(group)
}

// TestSweeps follows the events of two receivers through two lanes. The health stage publishes a sweep for each
// event that concerns subscriptions. Each lane looks through its pages once for both and sends commands to them, whose IDs follow from the event.
func TestSweeps(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := &healthStage{sinks: func() []string { return nil }, now: func() time.Time { return now }}
	lanes := []map[string]string{
		{"https://a.example/": "hook", "https://b.example/": "mail"},
		{"https://c.example/": "hook"},
	}
	events := []pipeline.Health{
		{ID: "e1", Event: pipeline.HealthReceiverExpired, Time: now, Receiver: &pipeline.Receiver{Sink: "hook"}, Reason: "gone"},
		{ID: "e2", Event: pipeline.HealthReceiverExpired, Time: now, Receiver: &pipeline.Receiver{Sink: "mail"}, Reason: "gone"},
		{ID: "e3", Event: pipeline.HealthReceiverRecovered, Time: now, Receiver: &pipeline.Receiver{Sink: "hook"}, Expired: true},
		{ID: "e4", Event: pipeline.HealthReceiverRecovered, Time: now, Receiver: &pipeline.Receiver{Sink: "hook"}},
		{ID: "e5", Event: pipeline.HealthReceiverFailing, Time: now, Receiver: &pipeline.Receiver{Sink: "hook"}},
		{ID: "e6", Event: pipeline.HealthReceiverExpired, Time: now},
	}
	kept := txtest.New()
	for _, e := range events {
		if err := kept.Handle(t.Context(), h, flow.HealthMessage(e)); err != nil {
			t.Fatal(err)
		}
	}
	sweeps := kept.Take()
	if len(sweeps) != 3 {
		t.Fatalf("%d messages follow from the events, want three sweeps", len(sweeps))
	}
	var got []string
	looks := 0
	sweep := func(lane int, m flow.Message) {
		t.Helper()
		m.Position = fmt.Sprintf("store/sweeps/%d/1", lane)
		own := txtest.New()
		own.Beside(flow.GroupIndex, laneWithPages(t, lanes[lane]))
		tx := own.Begin()
		if err := h.Process(t.Context(), countedTx{tx, &looks}, m); err != nil {
			t.Fatal(err)
		}
		for _, c := range tx.Emitted() {
			if want := flow.DeriveID("command", "e"+fmt.Sprint(slices.IndexFunc(sweeps, func(s flow.Message) bool { return s.ID == m.ID })+1), c.Key); c.ID != want {
				t.Errorf("a command has the ID %s, want one that follows from its event and page", c.ID)
			}
			got = append(got, fmt.Sprint(lane, " ", strings.TrimPrefix(c.Type, "vokter."), " ", c.Key))
		}
	}
	for lane := range lanes {
		for _, m := range sweeps {
			sweep(lane, m)
		}
	}
	slices.Sort(got)
	want := []string{
		"0 expire.v1 https://a.example/", "0 expire.v1 https://b.example/", "0 resume.v1 https://a.example/",
		"1 expire.v1 https://c.example/", "1 resume.v1 https://c.example/",
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
	if looks != len(lanes) {
		t.Errorf("%d looks at the pages of %d lanes for three sweeps, want one of each", looks, len(lanes))
	}
	lanes[1]["https://d.example/"] = "hook"
	now = now.Add(receiverPagesTTL + 1)
	got = nil
	sweep(1, sweeps[0])
	if len(got) != 2 {
		t.Errorf("later commands %q, want also the page that came meanwhile", got)
	}
}

// brokenTx is a transaction whose store cannot be read.
type brokenTx struct{ flow.Tx }

func (brokenTx) Neighbours(string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		yield("", flow.FailedState(failure.Broken(errors.New("the disk is gone"))))
	}
}

// TestSweepsThatCannotLook fails where the pages of the lane cannot be read.
func TestSweepsThatCannotLook(t *testing.T) {
	h := &healthStage{now: time.Now}
	s := flow.Sweep{Event: "e", Receiver: "hook"}
	err := h.Process(t.Context(), brokenTx{txtest.New().Begin()}, s.Message())
	if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
		t.Errorf("got %v, want an error that stops the Router", err)
	}
}
