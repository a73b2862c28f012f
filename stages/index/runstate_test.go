package index

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestALimitedRunFinishes(t *testing.T) {
	d := newDesk(t, Config{Checks: 3})
	d.stage.Expect(page)
	d.subscribe("c")
	for i := range 3 {
		if d.stage.Finished() {
			t.Fatalf("finished after %d checks", i)
		}
		d.answer(english)
	}
	if !d.stage.Finished() {
		t.Error("not finished after 3 checks")
	}
	if got := d.request.Check; got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}

	// The next run checks at once, though the page is not due for long.
	d.restart(Config{Checks: 1})
	d.command(flow.TypeCheckNow, nil)
	if got := d.request.Check; got != 4 {
		t.Errorf("got check %d, want the fourth", got)
	}
	d.answer(english)
	if got := d.request.Check; got != 4 {
		t.Errorf("got check %d, want no more", got)
	}

	// And one without limits goes on where the wake at its start finds the page.
	d.restart(Config{})
	for _, m := range d.store.Start(d.now) {
		d.handle(m)
	}
	if got := d.request.Check; got != 5 {
		t.Errorf("got check %d, want the fifth", got)
	}
}

func TestALimitedRunChecksWhateverTheSchedule(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	d.answer(english)
	every := time.Hour
	d.restart(Config{Checks: 1, Every: &every})
	for _, m := range d.store.Start(d.now) {
		d.handle(m)
	}
	if d.request.Check != 1 {
		t.Fatal("asked without a cause")
	}
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml"})
	if d.request.Check != 2 {
		t.Errorf("got check %d, want the second at once", d.request.Check)
	}
	d.command(flow.TypeCheckNow, nil) // the run's own check is under way
	d.answer(english)
	d.restart(Config{Checks: 2, Every: &every})
	d.command(flow.TypeCheckNow, nil)
	d.answer(english)
	d.command(flow.TypeCheckNow, nil)
	if d.request.Check != 3 {
		t.Errorf("got check %d, want one check an hour", d.request.Check)
	}
}

func TestFailedChecksCountInARun(t *testing.T) {
	d := newDesk(t, Config{Checks: 1})
	d.stage.Expect(page)
	d.subscribe("c")
	o := flow.Outcome{Page: page, Incarnation: d.request.Incarnation, Check: 1, Nonce: d.request.Nonce, Kind: flow.OutcomeFailed, Class: pipeline.FailDNS, RetryAfter: time.Hour, Time: d.now}
	d.handle(o.Message())
	if !d.stage.Finished() {
		t.Error("not finished after a failed check")
	}
}

func TestAnEndedPageIsFinished(t *testing.T) {
	d := newDesk(t, Config{Checks: 5})
	d.stage.Expect(page)
	d.subscribe("c")
	d.cancel("c")
	if !d.stage.Finished() {
		t.Error("not finished after the end")
	}
	d.subscribe("c")
	if d.stage.Finished() {
		t.Error("finished, though the page lives again")
	}
}

func TestOnlySomePages(t *testing.T) {
	d := newDesk(t, Config{Only: func(p string) bool { return p != page }})
	d.subscribe("c")
	if d.request.Check != 0 {
		t.Error("asked for a page that is not of this run")
	}
	if w, ok := d.store.Wake(page); !ok || !w.AtStart {
		t.Errorf("got wake %+v, want one for the next run", w)
	}
	d.restart(Config{})
	for _, m := range d.store.Start(d.now) {
		d.handle(m)
	}
	if d.request.Check != 1 {
		t.Error("the next run did not ask")
	}
}

func TestARolledBackCheckIsNotCounted(t *testing.T) {
	d := newDesk(t, Config{Checks: 1})
	d.stage.Expect(page)
	d.subscribe("c")
	o := flow.Outcome{Page: page, Incarnation: d.request.Incarnation, Check: 1, Nonce: d.request.Nonce, Kind: flow.OutcomeFailed, Class: pipeline.FailDNS, Time: d.now}
	failing := flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
		return errors.Join(d.stage.Process(ctx, tx, m), errors.New("the commit failed"))
	})
	if err := d.store.Handle(context.Background(), failing, o.Message()); err == nil {
		t.Fatal("got no error")
	}
	if d.stage.Finished() || len(d.notes) != 0 {
		t.Errorf("counted what was rolled back: %v", d.notes)
	}
	d.handle(o.Message())
	if !d.stage.Finished() {
		t.Error("not finished after the second attempt")
	}
}

func TestAnExpiredPageIsFinished(t *testing.T) {
	d := newDesk(t, Config{Checks: 12, Expire: pipeline.Expire{After: 3, Retry: -1}})
	d.stage.Expect(page)
	d.apply(sub("c", pipeline.View{}))
	for i := range 3 {
		if d.stage.Finished() {
			t.Fatalf("finished after %d checks", i)
		}
		d.fail(pipeline.FailStatus)
	}
	if !d.stage.Finished() {
		t.Error("not finished, though the page expired")
	}
	if want := []string{"check", "failed", "check", "failed", "check", "failed", "ended"}; !slices.Equal(d.notes, want) {
		t.Errorf("got observations %v, want %v", d.notes, want)
	}

	// The next run finds it expired, by its list and by the look at all pages.
	d.restart(Config{Checks: 12})
	d.stage.Expect(page)
	d.apply(sub("c", pipeline.View{}))
	if !d.stage.Finished() {
		t.Error("not finished, though the page was expired before")
	}
	d.stage.Expect(page)
	d.command(flow.TypeCheckNow, nil)
	if !d.stage.Finished() {
		t.Error("not finished, though there is nothing to check")
	}
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page})
	if d.stage.Finished() {
		t.Error("finished, though the page lives again")
	}
}

// TestALimitedRunKnowsWhatIsAskedOfIt: its first check comes behind its commands, which may
// bring other options.
func TestALimitedRunKnowsWhatIsAskedOfIt(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	d.answer(english)
	d.now = d.now.Add(24 * time.Hour)
	d.restart(Config{Checks: 1})
	for _, m := range slices.Concat(d.store.Start(d.now), d.store.Due(d.now)) {
		d.handle(m)
		if slices.Contains(d.types(), flow.TypeRequest) {
			t.Fatal("a check was asked for before any command")
		}
	}
	d.command(flow.TypeCheckNow, nil)
	if got := d.request.Check; got != 2 {
		t.Errorf("got check %d, want the second", got)
	}
}

// TestALimitedRunDoesNotWaitForPagesOfOthers gives a page away that was waited for.
func TestALimitedRunDoesNotWaitForPagesOfOthers(t *testing.T) {
	owned := true
	d := newDesk(t, Config{Checks: 1, Owned: func(string) bool { return owned }})
	d.stage.Expect(page)
	if d.stage.Finished() {
		t.Fatal("finished without a check")
	}
	owned = false
	if !d.stage.Finished() {
		t.Error("not finished, though the page is not its own any more")
	}
}

// TestAListAgainChangesNothing sends the same list again while the page waits for its next
// check, and while one is under way: nothing is published, stored or synced, and the wake stays.
func TestAListAgainChangesNothing(t *testing.T) {
	d := newDesk(t, Config{})
	list := flow.ApplyCommand{URL: page, Origin: "yaml", Keep: true, Subscriptions: []pipeline.Subscription{
		{URL: page, Client: "c", Keywords: []string{"stock"}, Sinks: []string{"s"}},
		{URL: page, Client: "d", Keywords: []string{"stock"}, Sinks: []string{"s"}},
	}}
	d.command(flow.TypeApply, list)
	for _, when := range []string{"under way", "waiting"} {
		before, _ := d.store.Wake(page)
		d.store.Writes()
		d.command(flow.TypeApply, list)
		after, _ := d.store.Wake(page)
		if n := d.store.Writes(); n > 0 || len(d.out) > 0 || before != after {
			t.Errorf("%s: %d writes, published %v, wake %v, which was %v", when, n, d.types(), after, before)
		}
		d.answer(english)
	}
}
