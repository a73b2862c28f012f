package delivery

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// TestWindows checks with random items that a window ends in time and is never too large.
func TestWindows(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		settings := []pipeline.Digest{{Every: pipeline.Duration(time.Hour), Max: 1 + r.IntN(5)}, {Every: pipeline.Duration(10 * time.Minute)}, {Cron: "0 9 * * * Europe/Berlin", Max: 3}}
		at := t0
		var win window
		for range 200 {
			at = at.Add(time.Duration(r.Int64N(int64(20*time.Minute)) - int64(5*time.Minute))) // clocks are set back, too
			d, size := settings[r.IntN(len(settings))], r.IntN(maxDigestBytes/4)
			if r.IntN(20) == 0 {
				size = 2 * maxDigestBytes
			}
			win = win.clampStart(at)
			if win.Items > 0 && (win.isFull() || !win.hasRoomFor(size) || !at.Before(win.Due)) {
				win = window{}
			}
			before := win
			win = win.add(d, at, size)
			switch {
			case before.Items == 0 && !win.Start.Equal(at), before.Items > 0 && !win.Start.Equal(before.Start):
				t.Fatalf("seed %d: at %s %+v became %+v", seed, at, before, win)
			case win.Due.After(d.End(win.Start)), before.Items > 0 && win.Due.After(before.Due):
				t.Fatalf("seed %d: %+v ends too late", seed, win)
			case win.Items != before.Items+1 || win.Bytes != before.Bytes+size || win.Items > 1 && win.Bytes > maxDigestBytes:
				t.Fatalf("seed %d: %+v became %+v", seed, before, win)
			case win.isFull() != (win.Items >= d.Items() || win.Bytes >= maxDigestBytes):
				t.Fatalf("seed %d: %+v is full: %v", seed, win, win.isFull())
			}
		}
	}
}

// deliveryFixture is a Delivery whose clock and attempts the test controls.
type deliveryFixture struct {
	*testing.T
	now      time.Time
	store    *txtest.Store
	d        *Delivery
	attempts []Attempt
	observed []string
}

func newDeliveryFixture(t *testing.T) *deliveryFixture {
	k := &deliveryFixture{T: t, now: t0, store: txtest.New()}
	k.start()
	return k
}

// start begins a process, and returns how many wakes of its start there were.
func (k *deliveryFixture) start() int {
	k.d = NewDelivery(Config{
		Now: func() time.Time { return k.now }, Jitter: func() float64 { return 0.5 },
		Hand:    func(a Attempt) { k.attempts = append(k.attempts, a) },
		Observe: func(o flow.Observation) { k.observed = append(k.observed, o.Kind+" "+o.ID) },
	})
	ms := k.store.Start(k.now)
	k.handle(ms...)
	return len(ms)
}

func (k *deliveryFixture) handle(ms ...flow.Message) {
	k.Helper()
	for _, m := range ms {
		if err := k.store.Handle(k.Context(), k.d, m); err != nil {
			k.Fatalf("%s %s: %v", m.Type, m.ID, err)
		}
	}
}

// valueChange returns a change of the value of the notification id.
func valueChange(id string) *pipeline.ValueChange {
	return &pipeline.ValueChange{Name: "Price", Old: "1", New: fmt.Sprint(len(id) + 1)}
}

// item is a notification to "r" of a subscription, with n diffs.
func (k *deliveryFixture) item(subscription, id string, d *pipeline.Digest, n int) flow.Message {
	k.Helper()
	diffs := make([]pipeline.Diff, n)
	for i := range diffs {
		diffs[i] = pipeline.Diff{Event: pipeline.Added, Keyword: id, Text: fmt.Sprint(id, i)}
	}
	m, err := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "r"}, Subscription: subscription, Document: "doc", Digest: d,
		Notification: pipeline.Notification{
			Status: pipeline.StatusOK, ID: id, URL: "https://Example.com", Client: "c", Type: pipeline.NotificationType, Time: k.now,
			Version: uint64(len(id)), Title: "Title " + id, Change: "change-" + id, Value: valueChange(id), Diffs: diffs,
		},
	}.Message()
	if err != nil {
		k.Fatal(err)
	}
	return m
}

// tick moves the clock and handles what is due.
func (k *deliveryFixture) tick(d time.Duration) {
	k.Helper()
	k.now = k.now.Add(d)
	k.handle(k.store.Due(k.now)...)
}

// takeDelivered returns the IDs of the items, or of the notification, of each attempt since its last call,
// and lets all of them succeed.
func (k *deliveryFixture) takeDelivered() string {
	k.Helper()
	var all []string
	for len(k.attempts) > 0 {
		a := k.attempts[0]
		k.attempts = k.attempts[1:]
		all = append(all, itemsOf(a.Notifications[0]))
		k.handle(a.Result(nil))
	}
	return strings.Join(all, " | ")
}

func itemsOf(n pipeline.Notification) string {
	if n.Type != pipeline.NotificationTypeDigest {
		return n.ID
	}
	var ids []string
	for _, i := range n.Items {
		ids = append(ids, i.ID)
	}
	return "[" + strings.Join(ids, " ") + "]"
}

func (k *deliveryFixture) record(id string) Record {
	k.Helper()
	r, ok, err := Known(k.store.Begin().State("r"), id)
	if err != nil || !ok {
		k.Fatalf("%s: %+v, %v, %v", id, r, ok, err)
	}
	return r
}

func hourly(most int) *pipeline.Digest {
	return &pipeline.Digest{Every: pipeline.Duration(time.Hour), Max: most}
}

func TestDigest(t *testing.T) {
	k := newDeliveryFixture(t)
	first := k.item("s", "a", hourly(0), 2)
	k.handle(first)
	k.tick(40 * time.Minute)
	k.handle(k.item("s", "bb", hourly(0), 1), first)
	k.start() // another process
	k.tick(19 * time.Minute)
	if len(k.attempts) != 0 {
		t.Fatalf("%d attempts before the hour is over", len(k.attempts))
	}
	if r := k.record("bb"); r.State != RecordCollected || !r.Time.Equal(t0.Add(time.Hour)) {
		t.Errorf("it is known as %+v", r)
	}
	if due, parked := k.d.Backlog(0); due != 0 || parked != 2 {
		t.Errorf("backlog %d+%d", due, parked)
	}
	k.tick(time.Minute)
	if len(k.attempts) != 1 {
		t.Fatalf("%d attempts after an hour", len(k.attempts))
	}
	got := k.attempts[0].Notifications[0]
	want := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://Example.com", Client: "c", Type: pipeline.NotificationTypeDigest,
		ID: flow.DeriveID("digest", "s", "2026-01-02T03:04:05Z", "a", "bb"), Time: t0.Add(40 * time.Minute), Version: 2, Title: "Title bb",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "a", Text: "a0"}, {Event: pipeline.Added, Keyword: "a", Text: "a1"}, {Event: pipeline.Added, Keyword: "bb", Text: "bb0"},
		},
		Items: []pipeline.Item{
			{ID: "a", Time: t0, Version: 1, Title: "Title a", Change: "change-a", Value: valueChange("a"), Diffs: 2},
			{ID: "bb", Time: t0.Add(40 * time.Minute), Version: 2, Title: "Title bb", Change: "change-bb", Value: valueChange("bb"), Diffs: 1},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if r := k.record("a"); r.State != RecordPending || r.In != want.ID {
		t.Errorf("it is known as %+v", r)
	}
	if k.takeDelivered(); !slices.Equal(k.observed, []string{"delivered a", "delivered bb"}) {
		t.Errorf("observed %q", k.observed)
	}
	if r := k.record("a"); r.State != RecordDelivered || r.In != want.ID || r.Attempts != 1 {
		t.Errorf("it is known as %+v", r)
	}
	// What was told is not told again, and what comes later begins another digest.
	k.handle(first, k.item("s", "ccc", hourly(0), 1))
	k.tick(time.Hour)
	if got := k.takeDelivered(); got != "[ccc]" {
		t.Errorf("then it took %s", got)
	}
}

func TestADigestThatFailsStaysTheSame(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.item("s", "a", hourly(0), 1), k.item("s", "bb", hourly(0), 1))
	k.tick(time.Hour)
	first := k.attempts[0]
	k.handle(first.Result(failure.RetryAfter(fmt.Errorf("busy"), time.Minute)), k.item("s", "ccc", hourly(0), 1))
	k.start() // and the process is replaced
	k.tick(2 * time.Minute)
	if len(k.attempts) != 2 || !reflect.DeepEqual(k.attempts[1].Notifications[0], first.Notifications[0]) || k.attempts[1].Number == first.Number {
		t.Fatalf("tried %+v", k.attempts)
	}
	k.attempts = k.attempts[1:]
	if got := k.takeDelivered(); got != "[a bb]" {
		t.Errorf("took %s", got)
	}
}

func TestWhatEndsADigestEarly(t *testing.T) {
	large := 256 << 10 / 40 // diffs of which each takes more than 40 bytes
	for _, c := range []struct {
		name string
		send func(k *deliveryFixture)
		want string
	}{
		{"it is full", func(k *deliveryFixture) {
			k.handle(k.item("s", "a", hourly(2), 1), k.item("s", "bb", hourly(2), 1), k.item("s", "ccc", hourly(2), 1))
		}, "[a bb]"},
		{"its first item is large", func(k *deliveryFixture) { k.handle(k.item("s", "a", hourly(0), large)) }, "[a]"},
		{"the next item is large", func(k *deliveryFixture) {
			k.handle(k.item("s", "a", hourly(0), 1), k.item("s", "bb", hourly(0), large))
		}, "[a] | [bb]"},
		{"its subscription wants none any more", func(k *deliveryFixture) {
			k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", hourly(0), 1), k.item("s", "bb", nil, 1))
		}, "[a] | bb"},
		{"its subscription wants a shorter one", func(k *deliveryFixture) {
			k.handle(k.item("s", "a", hourly(0), 1))
			k.tick(30 * time.Minute)
			k.handle(k.item("s", "bb", &pipeline.Digest{Every: pipeline.Duration(31 * time.Minute)}, 1))
			k.tick(time.Minute)
		}, "[a bb]"},
		{"it cannot be used", func(k *deliveryFixture) {
			k.handle(k.item("s", "a", &pipeline.Digest{Cron: "gibberish"}, 1))
			k.tick(0)
		}, "[a]"},
	} {
		k := newDeliveryFixture(t)
		c.send(k)
		if got := k.takeDelivered(); got != c.want {
			t.Errorf("%s: took %s, want %s", c.name, got, c.want)
		}
	}
}

// TestATimeoutComesLast has items of two documents of a page when it is given up, and of
// another client.
func TestATimeoutComesLast(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.item("s1", "a", hourly(0), 1), k.item("s2", "bb", hourly(0), 1), k.item("s1", "ccc", hourly(0), 1))
	other := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "r"}, Subscription: "s3", Digest: hourly(0),
		Notification: pipeline.Notification{ID: "o", URL: "https://example.com/", Client: "another"},
	}
	over := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "r"}, Subscription: "s1",
		Notification: pipeline.Notification{ID: "over", Status: pipeline.StatusTimeout, URL: "https://example.com/", Client: "c"},
	}
	health := flow.Addressed{Receiver: over.Receiver, Notification: pipeline.Notification{ID: "h", Type: pipeline.NotificationTypeHealth}}
	for _, a := range []flow.Addressed{other, health, over} {
		m, err := a.Message()
		if err != nil {
			t.Fatal(err)
		}
		k.handle(m)
	}
	if got := k.takeDelivered(); got != "h | [a ccc] | [bb] | over" {
		t.Errorf("took %s", got)
	}
	k.tick(time.Hour)
	if got := k.takeDelivered(); got != "[o]" {
		t.Errorf("then it took %s", got)
	}
}

func TestACancelledDigestIsDropped(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.item("s", "a", hourly(0), 1), k.item("other", "o", hourly(0), 1), withdrawal("r", "s"), k.item("s", "bb", hourly(0), 1))
	k.tick(time.Hour)
	if got := k.takeDelivered(); got != "[o]" {
		t.Errorf("took %s", got)
	}
	for _, id := range []string{"a", "bb"} {
		if r := k.record(id); r.State != RecordDropped {
			t.Errorf("%s is known as %+v", id, r)
		}
	}
	if want := []string{"dropped a", "dropped bb", "delivered o"}; !slices.Equal(k.observed, want) {
		t.Errorf("observed %q, want %q", k.observed, want)
	}
	// One that was frozen before is dropped as well.
	k.handle(k.item("u", "ccc", hourly(0), 1))
	k.tick(time.Hour)
	k.handle(k.attempts[0].Result(fmt.Errorf("busy")), withdrawal("r", "u"))
	k.tick(time.Minute)
	if r := k.record("ccc"); r.State != RecordDropped {
		t.Errorf("it is known as %+v", r)
	}
}

// TestMissedDigests: digests end although no process ran when they were due, or the clock was set.
func TestMissedDigests(t *testing.T) {
	k := newDeliveryFixture(t)
	for i := range 3 * flushBatch {
		k.handle(k.item(fmt.Sprint("s", i), fmt.Sprint("a", i), hourly(0), 1))
	}
	k.now = k.now.Add(24 * time.Hour)
	if n := k.start(); n != 1 {
		t.Fatalf("%d wakes at the start", n)
	}
	for range 3 { // in so many transactions
		k.tick(0)
	}
	if got := k.takeDelivered(); strings.Count(got, "[") != 3*flushBatch {
		t.Errorf("took %s", got)
	}
	// The clock was a year ahead when this one began.
	k.now = k.now.AddDate(1, 0, 0)
	k.handle(k.item("s", "ahead", hourly(0), 1))
	k.now = k.now.AddDate(-1, 0, 0)
	k.handle(k.store.Due(k.now.AddDate(2, 0, 0))...) // transports wake everything then
	k.tick(time.Hour - 1)
	if len(k.attempts) != 0 {
		t.Errorf("it is told too early")
	}
	k.tick(1)
	if got := k.takeDelivered(); got != "[ahead]" {
		t.Errorf("took %s", got)
	}
}

// TestDigestThatFellDueMeanwhile: a digest that fell due while nothing ran waits for the end of quiet
// hours that have begun since.
func TestDigestThatFellDueMeanwhile(t *testing.T) {
	k := newDeliveryFixture(t)
	digest, minute := hourly(0), k.now.Hour()*60+k.now.Minute()
	digest.Quiet = pipeline.Quiet{From: (minute + 120) % (24 * 60), To: (minute + 180) % (24 * 60)}
	k.handle(k.item("s", "a", digest, 1))
	k.tick(150 * time.Minute)
	if len(k.attempts) > 0 {
		t.Fatal("an attempt was made in the quiet hours")
	}
	k.tick(30 * time.Minute)
	if got := k.takeDelivered(); got != "[a]" {
		t.Errorf("took %q after the quiet hours, want the digest", got)
	}
}
