package index

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// stamps renders the stamps among the outputs.
func stamps(b *bench) []string {
	var got []string
	for _, s := range all[stamp](b.out) {
		until := fmt.Sprint(s.Until)
		if s.Until == flow.Forever {
			until = "-"
		}
		got = append(got, fmt.Sprintf("%s %s %d (%d,%s] %s", s.Subscription.Client, s.Origin, s.Stamp, s.From, until, s.Incarnation))
	}
	return got
}

func wantStamps(b *bench, want ...string) {
	b.Helper()
	if got := stamps(b); !slices.Equal(got, want) {
		b.Errorf("got stamps %q, want %q", got, want)
	}
}

func decided(b *bench, code int) {
	b.Helper()
	r := one[decide](b).Refusal
	if got := 0; r != nil {
		got = r.Code
		if got != code {
			b.Errorf("got code %d (%s), want %d", got, r.Message, code)
		}
	} else if code != 0 {
		b.Errorf("got an acceptance, want code %d", code)
	}
}

func TestADocumentThatReturnsRepeatsNoNumber(t *testing.T) {
	b := newBench(t)
	b.subscribe("stays", main)
	b.subscribe("a", pipeline.View{})
	id := flow.DocumentID(page, main)
	readBoth := func(text string) {
		for len(all[requestCheck](b.out)) == 0 {
			b.due()
		}
		for i, d := range b.p.Documents {
			b.text(d.ID, text, i, 2)
		}
	}
	b.text(id, "A", 0, 1)
	readBoth("A")
	readBoth("B")
	b.due() // a check of the document's first life is under way
	stale := b.outcome(flow.OutcomeRead)
	b.cancel("a")
	b.subscribe("a", pipeline.View{})
	if got, want := stamps(b)[0][:9], "a api 4 ("; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, d := range []string{id, whole} {
		o := stale
		o.Document, o.Part, o.Parts, o.TextHash, o.BodyHash = d, i, 2, "text:C", "body:C"
		b.do(outcome{Outcome: o})
		for _, v := range all[newVersion](b.out) {
			if v.Snapshot.Document == whole {
				t.Errorf("got %+v of a check that was asked for before", v.Snapshot)
			}
		}
	}
	if r := one[requestCheck](b).Request; r.BodyHash != "" {
		t.Errorf("got %+v, want a full request for the returned document", r)
	}
	readBoth("C")
	s := b.p.Document(whole)
	if s.N != 3 {
		t.Errorf("got %+v, want the baseline to be number 3", s)
	}
	for _, v := range all[newVersion](b.out) {
		if v.Snapshot.Document == whole && v.Snapshot.Previous != 0 {
			t.Errorf("got %+v, want a baseline", v.Snapshot)
		}
	}
}

func TestManyDocumentsComeAndGo(t *testing.T) {
	b := newBench(t)
	b.subscribe("stays", main)
	last := make(map[string]uint64)
	for i := range 200 {
		v := pipeline.View{Ignore: []string{fmt.Sprint("x", i%50)}}
		id := flow.DocumentID(page, v)
		b.subscribe("a", v)
		d := b.p.Document(id)
		if d.N < last[id] {
			t.Fatalf("round %d: got version %d, want at least %d", i, d.N, last[id])
		}
		d.TextHash, d.N = "x", d.N+2
		last[id] = d.N
		b.cancel("a")
	}
	if len(b.p.Gone) > maxGone {
		t.Errorf("got %d remembered, want at most %d", len(b.p.Gone), maxGone)
	}
}

func TestReplace(t *testing.T) {
	b := newBench(t)
	x, y := sub("x", pipeline.View{}), sub("y", pipeline.View{})
	b.replace("yaml", false, x, y)
	decided(b, 0)
	wantStamps(b, "x yaml 1 (0,-] S/1/0", "y yaml 2 (0,-] S/1/1")
	b.replace("yaml", false, x, y)
	wantStamps(b)
	decided(b, 0)
	b.read("A")

	x2 := x
	x2.Keywords = []string{"k", "l"}
	b.replace("yaml", false, x2, y)
	wantStamps(b, "x yaml 3 (0,1] S/1/0", "x yaml 4 (1,-] S/1/0")
	if got := b.p.Document(whole).Subscriptions; got != 2 {
		t.Errorf("got %d subscriptions, want 2", got)
	}

	b.subscribe("z", pipeline.View{})
	b.replace("yaml", false, x2)
	wantStamps(b, "y yaml 6 (0,1] S/1/1")

	// Neither the file nor the API replaces what the other made, also while it is paused.
	b.replace("yaml", false, x2, sub("z", pipeline.View{}))
	decided(b, flow.CodeConflict)
	wantStamps(b)
	b.pause("z")
	decided(b, 0)
	b.replace("yaml", false, x2, sub("z", pipeline.View{}))
	decided(b, flow.CodeConflict)
	wantStamps(b)
	b.cancel("z")
	b.replace("yaml", false, x2, sub("z", pipeline.View{}))
	decided(b, 0)
	if got := stamps(b); len(got) != 1 || !strings.HasPrefix(got[0], "z yaml ") {
		t.Errorf("got %q, want z added", got)
	}
	b.replace("api", false, x2)
	decided(b, 0)
	wantStamps(b)
	wantApplied(b, "x refused")

	moved := x
	moved.View = main
	b.replace("yaml", false, moved)
	if got := len(all[stamp](b.out)); got != 3 {
		t.Errorf("got %q, want one added and two ended", stamps(b))
	}
	if got := one[dropDocument](b).Document; got != whole {
		t.Errorf("got %s dropped, want the old document", got)
	}
	b.replace("yaml", false)
	one[pageEnded](b)
	decided(b, 0)
	b.replace("yaml", false)
	decided(b, 0)
	if len(b.out) != 1 {
		t.Errorf("got %+v of an empty list for no page", b.out)
	}
}

// TestReplaceByAList: what a list gave at run time is its own, and a subscription that is refused changes nothing of its
// client.
func TestReplaceByAList(t *testing.T) {
	b := newBench(t)
	crm := flow.ListOrigin("crm")
	x, y := sub("x", pipeline.View{}), sub("y", pipeline.View{})
	b.replace(crm, false, x, y)
	wantApplied(b, "x created", "y created")
	b.read("A")
	x2 := x
	x2.Keywords = []string{"k", "l"}
	b.replace(crm, false, x2, y)
	wantApplied(b, "x changed", "y unchanged")
	wantStamps(b, "x api/crm 3 (0,1] S/1/0", "x api/crm 4 (1,-] S/1/0")
	for _, other := range []string{"yaml", "api", flow.ListOrigin("other")} {
		b.replace(other, false, x)
		wantApplied(b, "x refused")
		wantStamps(b)
	}
	b.subscribe("z", main)
	z, zMain := sub("z", pipeline.View{}), sub("z", main)
	b.replace(crm, false, x2, z)
	wantApplied(b, "x unchanged", "z created", "y removed")
	b.replace(crm, false, x2, zMain)
	wantApplied(b, "x unchanged", "z refused")
	wantStamps(b) // z keeps what it has
	b.pause("x")
	b.replace(crm, false, x2, z)
	wantApplied(b, "x unchanged", "z unchanged")
	b.replace(crm, false, x, z)
	wantApplied(b, "x changed", "z unchanged")
	wantStamps(b)
	dry := b.p
	r := replace{Origin: crm, Existing: b.standing(""), Expired: b.expired(""), DryRun: true}
	b.do(r)
	wantApplied(b, "z removed", "x removed")
	if len(b.out) != 1 || !reflect.DeepEqual(dry, b.p) {
		t.Errorf("got %+v of a dry run", b.out)
	}
	r.DryRun, r.Spared = false, []string{"z"}
	b.do(r)
	wantApplied(b, "x removed")
	b.replace(crm, false)
	wantApplied(b, "z removed")
}

// wantApplied checks what became of the subscriptions of the last list.
func wantApplied(b *bench, want ...string) {
	b.Helper()
	var got []string
	for _, a := range one[decide](b).Applied {
		got = append(got, a.Client+" "+a.Outcome)
		if (a.Reason != "") != (a.Outcome == flow.AppliedRefused) && a.Client != "x" {
			b.Errorf("got the reason %q for %s", a.Reason, a.Outcome)
		}
	}
	if !slices.Equal(got, want) {
		b.Errorf("got %q, want %q", got, want)
	}
}

// TestPause: a page is not checked for a paused subscription, which starts again from what is then
// current.
func TestPause(t *testing.T) {
	b := newBench(t)
	b.pause("a")
	decided(b, flow.CodeNotFound)
	b.subscribe("a", pipeline.View{})
	b.subscribe("b", pipeline.View{})
	b.read("A")
	b.pause("a")
	decided(b, 0)
	if got := stamps(b); len(got) != 1 || !strings.HasPrefix(got[0], "a api ") || !strings.Contains(got[0], "(0,1]") {
		t.Errorf("got %q, want a ended with version 1", got)
	}
	if len(all[withdraw](b.out)) > 0 {
		t.Error("notifications of earlier changes are withdrawn")
	}
	b.pause("a")
	decided(b, 0)
	wantStamps(b)
	b.do(subscribe{Origin: "api", Subscription: sub("a", pipeline.View{}), Expired: &b.expired("a")[0]})
	decided(b, flow.CodeConflict)
	b.due()
	b.read("B")
	b.resume("a", "")
	decided(b, 0)
	if got := stamps(b); len(got) != 1 || !strings.Contains(got[0], "(2,-]") {
		t.Errorf("got %q, want a to begin behind version 2", got)
	}

	b.pause("a")
	b.pause("b")
	if none[pageEnded](b); !b.p.Rests() || b.p.Expired != 2 {
		t.Errorf("got %+v, want a page that rests", b.p)
	}
	b.resume("", "")
	if got := stamps(b); len(got) != 2 || !strings.Contains(got[0], "(2,-]") {
		t.Errorf("got %q, want both to begin behind version 2", got)
	}
}

func TestOriginsAreOfAllThatIsThere(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{After: 1, Retry: -1}})
	origins := func(want ...string) {
		t.Helper()
		if got, err := Origins(d.state()); err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Errorf("got %v (%v), want %v", got, err, want)
		}
	}
	origins()
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "kept", Keep: true})
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "listed", Subscriptions: []pipeline.Subscription{sub("l", main)}})
	origins("kept", "listed")
	d.fail(pipeline.FailDNS)
	origins("kept", "listed")
	if x, err := d.expiry(); err != nil || !slices.Equal(x.Keep, []string{"kept"}) || x.Class != pipeline.FailDNS {
		t.Errorf("got %+v (%v)", x, err)
	}
	d.subscribe("a")
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "keeps", Keep: true})
	origins("api", "keeps", "kept", "listed")
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page})
	if x, err := d.expiry(); err != nil || x != nil {
		t.Errorf("got %+v (%v) of a page that was resumed", x, err)
	}
	origins("api", "keeps", "kept", "listed")
}

func TestSubscribingToAnExpiredPairListsItNoMore(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{After: 1, Retry: -1}})
	d.subscribe("a")
	d.subscribe("b")
	d.fail(pipeline.FailDNS)
	d.subscribe("a")
	if xs, err := Expired(d.state()); err != nil || len(xs) != 1 || xs[0].Subscription.Client != "b" {
		t.Errorf("got %+v (%v)", xs, err)
	}
	if p, err := Load(d.state()); err != nil || p.Expired != 1 {
		t.Errorf("got %+v (%v)", p, err)
	}
}
