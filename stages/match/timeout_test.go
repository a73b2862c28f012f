package match

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// endStampedBecause is what ends s because of why.
func endStampedBecause(s flow.Stamped, stamp int, until uint64, why string) flow.Stamped {
	s = endStamped(s, stamp, until)
	s.End = why
	if why == flow.EndExpired {
		s.Tell = pipeline.StatusTimeout
	}
	return s
}

// expirePage ends the page's life "inc", and returns what its clients are told.
func (h stageTest) expirePage(stamp uint64) ([]flow.Addressed, error) {
	o := outageAt(stamp)
	err := h.Handle(context.Background(), h.p, newMessage(flow.TypeOutage, o))
	if err == nil {
		err = h.Handle(context.Background(), h.p, newMessage(flow.TypeEnded, flow.Ended{Page: page, Incarnation: "inc", Listed: true}))
	}
	var out []flow.Addressed
	for _, m := range h.Take() {
		if m.Type == flow.TypeTold {
			continue
		}
		var a flow.Addressed
		if jerr := json.Unmarshal(m.Body, &a); jerr != nil || m.Topic != flow.TopicNotifications || m.ID != a.Notification.ID || m.Key != a.Receiver.Sink {
			h.t.Fatalf("emitted %+v: %v", m, jerr)
		}
		out = append(out, a)
	}
	return out, err
}

// outageAt is the outage of the records up to stamp.
func outageAt(stamp uint64) flow.Outage {
	at := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	return flow.Outage{
		Page: page, Incarnation: "inc", First: 1, Stamp: stamp, Lineage: "store1",
		Time: at, Since: at.Add(-2 * time.Hour), Class: "status", Reason: "the server answered 500", Failures: 10,
	}
}

// recipientsOf returns who is told: "client/sink".
func recipientsOf(as []flow.Addressed) (out []string) {
	for _, a := range as {
		out = append(out, a.Notification.Client+"/"+a.Receiver.Sink)
	}
	return out
}

func TestTimeout(t *testing.T) {
	var seen []flow.Observation
	h := newStageTest(t, Config{Observe: func(o flow.Observation) { seen = append(seen, o) }})
	first := newStamped(1, 1, 3, flow.Forever, "argus") // has heard nothing yet
	h.applyStamps(first, endStampedBecause(first, 2, 3, flow.EndExpired))
	as, err := h.expirePage(2)
	if err != nil || !slices.Equal(recipientsOf(as), []string{"c1/hook", "c1/log"}) {
		t.Fatalf("told to %q, %v", recipientsOf(as), err)
	}
	want := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "hook"}, Document: "doc", Subscription: "sub1",
		Notification: pipeline.Notification{
			Status: "timeout", URL: "HTTPS://example.com", Diffs: []pipeline.Diff{}, Type: "notification", Client: "c1",
			ID: flow.OutageID("timeout", outageAt(2), "sub1", "hook"), Time: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
			Since:  time.Date(2026, 1, 2, 22, 0, 0, 0, time.UTC),
			Reason: "given up after 10 failed checks in a row; the last one: the server answered 500",
		},
	}
	if !reflect.DeepEqual(as[0], want) {
		t.Errorf("got %+v\nwant %+v", as[0], want)
	}
	if b, _ := json.Marshal(as[0].Notification); !strings.HasPrefix(string(b), `{"status":"timeout","url":"HTTPS://example.com","diffs":[],`) {
		t.Errorf("it reads %s", b)
	}
	if len(seen) != 2 || seen[0].Kind != flow.KindNotification || seen[0].ID != want.Notification.ID || seen[0].N != 0 {
		t.Errorf("observed %+v", seen)
	}
	if names := slices.Concat(h.stateNames(kindEnded), h.stateNames(kindTell), h.stateNames(kindFilter)); len(names) != 0 {
		t.Errorf("%q is left", names)
	}
	// The end of the same life again tells nobody: it is forgotten.
	if as, err := h.expirePage(0); err != nil || len(as) != 0 {
		t.Errorf("again: told to %q, %v", recipientsOf(as), err)
	}
}

func TestOneTimeoutForAClient(t *testing.T) {
	h := newStageTest(t, Config{})
	// The client watches three documents of the page; one it cancelled before.
	var ss [3]flow.Stamped
	for i, sinks := range [][]string{{"log", "mail"}, {"hook", "log"}, {"chat"}} {
		ss[i] = newStamped(9-i, i+1, 0, flow.Forever, "argus")
		ss[i].Document, ss[i].Subscription.Client, ss[i].Subscription.Sinks = string(rune('a'+i)), "", sinks
	}
	ss[1].Subscription.URL = "https://EXAMPLE.com"
	h.applyStamps(ss[:]...)
	h.applyStamps(endStampedBecause(ss[2], 4, 0, flow.EndCancelled), endStampedBecause(ss[0], 5, 0, flow.EndExpired), endStampedBecause(ss[1], 6, 0, flow.EndExpired))
	as, err := h.expirePage(6)
	if err != nil || !slices.Equal(recipientsOf(as), []string{"default/hook", "default/log", "default/mail"}) {
		t.Fatalf("told to %q, %v", recipientsOf(as), err)
	}
	// Each receiver is told in the name of a subscription that names it: of sub8, the smaller
	// of sub9 and sub8, and mail of sub9, so that a withdrawal there finds it.
	want := []struct{ subscription, document, url string }{
		{"sub8", "b", "https://EXAMPLE.com"}, {"sub8", "b", "https://EXAMPLE.com"}, {"sub9", "a", ss[0].Subscription.URL},
	}
	for i, a := range as {
		if a.Subscription != want[i].subscription || a.Document != want[i].document || a.Notification.URL != want[i].url ||
			a.Notification.ID != flow.OutageID("timeout", outageAt(6), want[i].subscription, a.Receiver.Sink) {
			t.Errorf("got %+v, want it named by %+v", a, want[i])
		}
	}
}

// TestATimeoutOfAnotherLife has subscriptions of the page's next life when the last one's end
// is handled.
func TestATimeoutOfAnotherLife(t *testing.T) {
	h := newStageTest(t, Config{})
	s := newStamped(1, 1, 0, flow.Forever, "argus")
	next := newStamped(2, 1, 0, flow.Forever, "argus")
	next.PageIncarnation = "inc2"
	h.applyStamps(s, endStampedBecause(s, 2, 0, flow.EndExpired), next, endStampedBecause(next, 2, 0, flow.EndExpired))
	if as, err := h.expirePage(2); err != nil || !slices.Equal(recipientsOf(as), []string{"c1/hook", "c1/log"}) {
		t.Errorf("told to %q, %v", recipientsOf(as), err)
	}
	if got := h.stateNames(kindTell); len(got) != 1 {
		t.Errorf("%q is kept, want the next life's", got)
	}
}

func TestNothingOfATimeoutThatFailedCounts(t *testing.T) {
	h := newStageTest(t, Config{})
	s := newStamped(1, 1, 0, flow.Forever, "argus")
	h.applyStamps(s, endStampedBecause(s, 2, 0, flow.EndExpired))
	var first []flow.Message
	for range 2 { // a crash before the commit, and again
		tx := h.Begin()
		m := newMessage(flow.TypeOutage, outageAt(2))
		if err := h.p.Process(context.Background(), tx, m); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = tx.Emitted()
		}
		if len(first) != 2 || !reflect.DeepEqual(tx.Emitted(), first) {
			t.Errorf("emitted %+v, and the first time %+v", tx.Emitted(), first)
		}
	}
	if as, err := h.expirePage(2); err != nil || len(as) != 2 || as[0].Notification.ID != first[0].ID {
		t.Errorf("told %+v, %v", as, err)
	}
}

// TestHowItEnded has a change in the backlog when a subscription ends.
func TestHowItEnded(t *testing.T) {
	for _, c := range []struct{ why, want string }{
		{"", "[change1/c0 change1/c1 change2/c0 change2/c1]"}, // another record took its place, which hears what comes later
		{flow.EndCancelled, "[change1/c0 change2/c0]"},
		{flow.EndReceiver, "[change1/c0 change1/c1 change2/c0 change2/c1]"}, // which becomes dead letters, and can be replayed
		{flow.EndExpired, "[change1/c0 change1/c1 change2/c0 change2/c1]"},
	} {
		h := newStageTest(t, Config{Batch: 1})
		var ss []flow.Stamped
		for i := range 2 {
			s := newStamped(i, i+1, 0, flow.Forever, "argus")
			s.Subscription.Sinks = []string{"hook"}
			ss = append(ss, s)
		}
		h.applyStamps(ss...)
		got := h.handle(newMessage(flow.TypeChange, newChange(1, "argus")))
		got = append(got, h.handle(newMessage(flow.TypeChange, newChange(2, "argus")))...)
		h.applyStamps(endStampedBecause(ss[1], 3, 2, c.why))
		again := newStamped(1, 4, 2, flow.Forever, "argus")
		again.Subscription.Sinks = []string{"hook"}
		h.applyStamps(again) // the client subscribes again, and hears of later versions
		for len(h.stateNames(backlogName)) > 0 {
			got = append(got, h.handle(flow.Message{ID: "w", Key: page, Type: flow.TypeWake})...)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("ended by %q: told %v, want %v", c.why, got, c.want)
		}
		if left := h.stateNames(kindEnded); len(left) != 0 {
			t.Errorf("ended by %q: %q is left", c.why, left)
		}
		if got := h.handle(newMessage(flow.TypeChange, newChange(3, "zeus"))); len(got) != 0 {
			t.Errorf("ended by %q: version 3 is told to %q", c.why, got)
		}
	}
}

// TestIndexIsToldOfWhatNotificationsLinkTo: of a version of which somebody is notified, and of no other.
func TestIndexIsToldOfWhatNotificationsLinkTo(t *testing.T) {
	h := newStageTest(t, Config{})
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus"))
	for _, c := range []struct {
		word string
		want int
	}{{"argus", 1}, {"hera", 0}} {
		change := newChange(3, c.word)
		if err := h.Handle(context.Background(), h.p, newMessage(flow.TypeChange, change)); err != nil {
			t.Fatal(err)
		}
		var told []flow.Told
		for _, m := range h.Take() {
			if m.Type != flow.TypeTold {
				continue
			}
			got, err := flow.ToldFrom(m)
			if err != nil || m.Topic != flow.TopicDocuments || m.Key != page {
				t.Errorf("got %+v, %v", m, err)
			}
			told = append(told, got)
		}
		if len(told) != c.want || c.want > 0 && (told[0].Version != 3 || told[0].Document != change.Document || told[0].Incarnation != "inc") {
			t.Errorf("%s: index is told %+v", c.word, told)
		}
	}
}
