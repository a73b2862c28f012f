package index

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func (d *desk) history() []CheckRecord {
	d.Helper()
	rs, err := History(d.state())
	if err != nil {
		d.Fatal(err)
	}
	return rs
}

func TestHistory(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	for _, content := range []string{english, english + "Sold out.\n", english + "Sold out.\n"} {
		for i, doc := range d.request.Documents {
			o := fetched(d.request, i, content)
			if doc.TextHash == o.TextHash {
				o.Kind, o.Against, o.Packed = flow.OutcomeUnchanged, o.TextHash, nil
			}
			o.Time, o.Status, o.Bytes, o.Took = d.now, 200, 7, 30*time.Millisecond
			d.handle(o.Message())
		}
		d.wake()
	}
	d.fail(pipeline.FailDNS)
	d.wake()
	o := flow.Outcome{Page: page, Incarnation: d.request.Incarnation, Check: d.request.Check, Nonce: d.request.Nonce, Kind: flow.OutcomeFailed, Class: pipeline.FailStatus,
		Reason: "HTTP status 500", Status: 500, Offline: true, Time: d.now}
	d.handle(o.Message())
	got := d.history()
	for i := range got {
		if i > 0 && !got[i].Time.Before(got[i-1].Time) {
			t.Errorf("%+v follows %+v", got[i], got[i-1])
		}
	}
	at := func(i int) time.Time { return got[i].Time }
	if len(got) != 5 {
		t.Fatalf("got %+v", got)
	}
	want := []CheckRecord{
		{Check: 5, Time: at(0), Result: flow.OutcomeFailed, Class: pipeline.FailStatus, Reason: "HTTP status 500", Status: 500, Offline: true},
		{Check: 4, Time: at(1), Result: flow.OutcomeFailed, Class: pipeline.FailDNS, Reason: got[1].Reason},
		{Check: 3, Time: at(2), Result: flow.OutcomeUnchanged, Status: 200, Bytes: 7, Took: pipeline.Duration(30 * time.Millisecond)},
		{Check: 2, Time: at(3), Result: flow.OutcomeRead, Status: 200, Bytes: 7, Took: pipeline.Duration(30 * time.Millisecond), Versions: map[string]uint64{whole: 2}},
		{Check: 1, Time: at(4), Result: flow.OutcomeRead, Status: 200, Bytes: 7, Took: pipeline.Duration(30 * time.Millisecond), Versions: map[string]uint64{whole: 1}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestHistoryCountsQuietChecks: checks in a row that found nothing new are one record.
func TestHistoryCountsQuietChecks(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	d.answer(english)
	unchanged := func(status int) time.Time {
		d.wake()
		o := flow.Outcome{
			Page: page, Incarnation: d.request.Incarnation, Check: d.request.Check, Nonce: d.request.Nonce, Kind: flow.OutcomeUnchanged,
			Against: d.request.BodyHash, Status: status, Time: d.now,
		}
		d.handle(o.Message())
		return o.Time
	}
	first := unchanged(304)
	for range 2 * historySize {
		unchanged(304)
	}
	last := unchanged(304)
	other := unchanged(200)
	d.wake()
	d.fail(pipeline.FailDNS)
	got := d.history()
	if len(got) != 4 || got[0].Result != flow.OutcomeFailed || got[3].Result != flow.OutcomeRead {
		t.Fatalf("got %+v", got)
	}
	for i, want := range map[int]CheckRecord{
		1: {Check: 44, Time: other, Result: flow.OutcomeUnchanged, Status: 200},
		2: {Check: 43, Time: last, Since: first, Repeats: 41, Result: flow.OutcomeUnchanged, Status: 304},
	} {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("got %+v\nwant %+v", got[i], want)
		}
	}
}

// TestHistoryBesideCommits: a record that becomes one of the stored records while the history is read is
// shown once.
func TestHistoryBesideCommits(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	d.answer(english)
	d.wake()
	d.answer(english)
	earlier, _, err := d.state().Get(progressName)
	if err != nil {
		t.Fatal(err)
	}
	d.wake()
	d.fail(pipeline.FailDNS)
	rs, err := History(between{d.state(), &[][]byte{earlier}})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, r := range rs {
		got = append(got, r.Check)
	}
	if want := []uint64{3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got the checks %v, want %v", got, want)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{After: 50, Retry: -1}})
	d.subscribe("c")
	for range 49 {
		d.fail(pipeline.FailDNS)
		d.wake()
	}
	d.fail(pipeline.FailDNS)
	var got []string
	for _, r := range d.history() {
		got = append(got, fmt.Sprint(r.Check))
	}
	if want := "50 49 48 47 46 45 44 43 42 41 40 39 38 37 36 35 34 33 32 31"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	// The page expired; what led to that is known until nobody asks for it any more.
	d.subscribe("c")
	d.answer(english)
	if got := d.history(); len(got) != historySize || got[0].Result != flow.OutcomeRead || got[0].Check != 1 || got[1].Check != 50 {
		t.Errorf("got %+v", got)
	}
	d.cancel("c")
	if got := d.store.Names(page); len(got) != 0 {
		t.Errorf("got %q after the cancel", got)
	}
}

// checks are the numbers of the checks in the history.
func (d *desk) checks() (numbers []uint64) {
	d.Helper()
	for _, r := range d.history() {
		numbers = append(numbers, r.Check)
	}
	return numbers
}

// The clock is set back a day, and then the page begins another life: what was done last
// stays first.
func TestHistoryGoesByWhatWasDone(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{After: 3, Retry: -1}})
	d.subscribe("c")
	d.answer(english)
	d.wake()
	d.now = d.now.Add(-24 * time.Hour)
	d.handle(flow.Message{Topic: flow.TopicDocuments, Key: page, Type: flow.TypeWake})
	for range 2 {
		d.fail(pipeline.FailDNS)
		d.wake()
	}
	d.fail(pipeline.FailDNS) // and the page expires
	if got := d.history(); len(got) != 4 || got[0].Time.After(got[3].Time) {
		t.Fatalf("got %+v, want four records, the last one with the latest time", got)
	}
	if got, want := d.checks(), []uint64{4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.now = d.now.Add(-24 * time.Hour)
	d.subscribe("c")
	d.answer(english)
	d.wake()
	d.fail(pipeline.FailDNS)
	if got, want := d.checks(), []uint64{2, 1, 4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Another document, or other clients, change nothing about the history.
	d.subscribe("other")
	d.cancel("c")
	if got, want := d.checks(), []uint64{2, 1, 4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A check of several documents is one record, which says of each what became of it.
func TestHistoryOfDocuments(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.subscribe("c", main)
	scoped := flow.DocumentID(page, main)
	b.due()
	b.text(b.p.Documents[0].ID, "A", 0, 2)
	none[record](b)
	b.text(b.p.Documents[1].ID, "A", 1, 2)
	if r := one[record](b); !reflect.DeepEqual(r.Versions, map[string]uint64{whole: 1, scoped: 1}) || r.Result != flow.OutcomeRead {
		t.Errorf("got %+v", r)
	}
	b.due()
	b.text(b.p.Documents[0].ID, "B", 0, 2)
	o := b.outcome(flow.OutcomeFailed)
	o.Part, o.Parts, o.Document, o.Class, o.Reason = 1, 2, b.p.Documents[1].ID, pipeline.FailSelectorGone, "gone"
	b.do(outcome{Outcome: o})
	if r := one[record](b); len(r.Versions) != 1 || r.Result != flow.OutcomeFailed || r.Class != pipeline.FailSelectorGone || r.Reason != "gone" {
		t.Errorf("got %+v", r)
	}
}

func TestHistorySaysWhatWaits(t *testing.T) {
	b := newBench(t)
	view := pipeline.View{Confirm: 2}
	b.subscribe("c", view)
	id := flow.DocumentID(page, view)
	var got []string
	for _, s := range []string{"A", "B", "B", "B"} {
		b.text(id, s, 0, 1)
		r := b.p.Quiet
		if r == nil {
			stored := one[record](b)
			r = &stored.CheckRecord
		}
		got = append(got, strings.TrimSpace(fmt.Sprint(r.Result, " ", len(r.Versions), " ", r.Reason)))
		b.due()
	}
	want := []string{"read 1", "read 0 a new text was found in 1 of 2 checks", "read 1", "unchanged 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
