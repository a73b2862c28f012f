package match

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// history returns the history of the page.
func (h stageTest) history() []ChangeRecord {
	h.t.Helper()
	all, err := History(h.Begin().State(page))
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func versions(rs []ChangeRecord) (out []int) {
	for _, r := range rs {
		out = append(out, int(r.Version))
	}
	return out
}

func TestHistory(t *testing.T) {
	h := newStageTest(t, Config{})
	if got := h.history(); len(got) != 0 {
		t.Errorf("at first it holds %+v", got)
	}
	h.applyStamps(newStamped(1, 1, 0, flow.Forever, "argus", "sees"))
	quiet, loud := newChange(1, "nothing"), newChange(2, "argus sees, argus")
	quiet.Check, loud.Check = 6, 7
	h.recipients(quiet)
	h.recipients(loud)
	match := func(sink string) Notified {
		return Notified{Notification: flow.NotificationID("change2", "sub1", sink), Client: "c1",
			Receiver: pipeline.Receiver{Sink: sink}, Keywords: []string{"argus", "sees"}}
	}
	want := []ChangeRecord{
		{N: 1, ID: "change2", Document: "doc", Version: 2, Check: 7, Time: loud.Time, Matches: []Notified{match("hook"), match("log")}},
		{N: 0, ID: "change1", Document: "doc", Version: 1, Check: 6, Time: quiet.Time},
	}
	if got := h.history(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestHistoryWhereTheFilterIsClosed has a change that is known to touch nobody without the
// table being read.
func TestHistoryWhereTheFilterIsClosed(t *testing.T) {
	filtered := 0
	h := newStageTest(t, Config{Cache: 1, Observe: func(o flow.Observation) {
		if o.Kind == flow.KindFiltered {
			filtered++
		}
	}})
	for i := range minFilteredTable {
		h.applyStamps(newStamped(i, i+1, 0, flow.Forever, "argus"))
	}
	h.recipients(newChange(1, "zeus"))
	h.evictTables()
	h.recipients(newChange(2, "hera"))
	if filtered != 1 {
		t.Errorf("%d changes were filtered, want 1", filtered)
	}
	if got := versions(h.history()); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("it holds versions %v", got)
	}
}

func TestHistoryIsARing(t *testing.T) {
	h := newStageTest(t, Config{})
	for n := 1; n <= 2*MaxHistory+3; n++ {
		h.recipients(newChange(n, "word"))
		var want []int
		for v := n; v > max(n-MaxHistory, 0); v-- {
			want = append(want, v)
		}
		if got := versions(h.history()); !slices.Equal(got, want) {
			t.Fatalf("after %d changes it holds versions %v", n, got)
		}
	}
	if got := h.stateNames(historyName); len(got) != MaxHistory+1 {
		t.Errorf("the state holds %q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := newStageTest(t, Config{})
	var words []string
	text := ""
	for i := range maxMatchKeywords + 5 {
		words = append(words, fmt.Sprint("word", i))
		text += fmt.Sprintf("word%d. ", i)
	}
	const subs = maxRecordMatches/2 + 3
	for i := range subs {
		h.applyStamps(newStamped(i, i+1, 0, flow.Forever, words...))
	}
	h.recipients(newChange(1, text))
	r := h.history()[0]
	if len(r.Matches) != maxRecordMatches || r.Omitted != 6 || len(r.Matches[0].Keywords) != maxMatchKeywords {
		t.Errorf("%d notifications and %d more, of %d keywords", len(r.Matches), r.Omitted, len(r.Matches[0].Keywords))
	}
}

// TestHistoryWhileItIsWritten reads a ring whose oldest record was replaced, or that was
// cleared, after it was counted.
func TestHistoryWhileItIsWritten(t *testing.T) {
	h := newStageTest(t, Config{})
	for n := 1; n <= MaxHistory; n++ {
		h.recipients(newChange(n, "word"))
	}
	tx := h.Begin()
	if err := storeValue(tx.State(page), historySlotName(0), ChangeRecord{N: MaxHistory, Version: MaxHistory + 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := History(tx.State(page)); err != nil || len(got) != MaxHistory-1 || got[0].Version != MaxHistory {
		t.Errorf("it holds versions %v, %v", versions(got), err)
	}
	for i := range MaxHistory {
		_ = tx.State(page).Delete(historySlotName(i))
	}
	if got, err := History(tx.State(page)); err != nil || len(got) != 0 {
		t.Errorf("it holds versions %v, %v", versions(got), err)
	}
}

func TestHistoryOutlivesAnExpiryOnly(t *testing.T) {
	h := newStageTest(t, Config{})
	s := newStamped(1, 1, 0, flow.Forever, "argus")
	h.applyStamps(s)
	h.recipients(newChange(1, "argus"))
	h.applyStamps(endStampedBecause(s, 2, 1, flow.EndExpired))
	as, err := h.expirePage(2)
	if err != nil {
		t.Fatal(err)
	}
	got := h.history()
	if len(got) != 2 || got[1].Version != 1 || got[0].Reason != as[0].Notification.Reason || len(got[0].Matches) != 2 ||
		got[0].Matches[0].Notification != as[0].Notification.ID || !got[0].Time.Equal(as[0].Notification.Time) {
		t.Errorf("after the expiry it holds %+v", got)
	}
	// It goes on in the next life, and goes with the last subscription.
	c := newChange(2, "argus")
	c.Incarnation = "inc2"
	h.recipients(c)
	if got := versions(h.history()); !slices.Equal(got, []int{2, 0, 1}) {
		t.Errorf("it holds versions %v", got)
	}
	if err := h.Handle(context.Background(), h.p, newMessage(flow.TypeEnded, flow.Ended{Page: page, Incarnation: "inc2"})); err != nil {
		t.Fatal(err)
	}
	if got := h.stateNames(historyName); len(got) != 0 {
		t.Errorf("%q is left", got)
	}
}

// TestHistoryOfWhatIsStillListed ends a page because the receivers of its subscription
// expired, and then because it was cancelled.
func TestHistoryOfWhatIsStillListed(t *testing.T) {
	h := newStageTest(t, Config{})
	end := func(listed bool) {
		t.Helper()
		if err := h.Handle(context.Background(), h.p, newMessage(flow.TypeEnded, flow.Ended{Page: page, Incarnation: "inc", Listed: listed})); err != nil {
			t.Fatal(err)
		}
	}
	s := newStamped(1, 1, 0, flow.Forever, "argus")
	h.applyStamps(s)
	h.recipients(newChange(1, "argus"))
	h.applyStamps(endStampedBecause(s, 2, 1, flow.EndReceiver))
	end(true)
	if got := versions(h.history()); !slices.Equal(got, []int{1}) {
		t.Errorf("it holds versions %v", got)
	}
	h.applyStamps(s, endStampedBecause(s, 2, 1, flow.EndCancelled))
	end(false)
	if got := h.history(); len(got) != 0 {
		t.Errorf("after a cancel it holds %+v", got)
	}
}
