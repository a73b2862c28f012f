package index

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// checks is a number of checks that end alike; without a class they find nothing new.
type checks struct {
	n       int
	class   string
	offline bool
}

// healths names the health events among the outputs.
func healths(out []output) []string {
	var events []string
	for _, h := range all[healthEvent](out) {
		events = append(events, string(h.Event))
	}
	return events
}

// failing applies checks of the whole page and returns the health events that came of them.
func (b *bench) failing(cs ...checks) []string {
	b.Helper()
	var events []string
	for _, c := range cs {
		for range c.n {
			if b.p.Incarnation == "" {
				b.Fatalf("the page is gone after %d failures", b.p.Expiry.Failures)
			}
			for b.p.Open == nil {
				b.due()
			}
			o := b.outcome(flow.OutcomeUnchanged)
			o.Against = b.p.BodyHash
			if c.class != "" {
				o = b.outcome(flow.OutcomeFailed)
				o.Class, o.Reason, o.Offline = c.class, "why", c.offline
			}
			if documentMissing(c.class) {
				o.Document, o.Parts = whole, 1
			}
			b.found(o)
			events = append(events, healths(b.out)...)
		}
	}
	return events
}

// watched returns a bench whose page has a baseline, for the clients a and b, and is never dormant.
func watched(t *testing.T) *bench {
	b := newBench(t)
	b.rules.Expire = pipeline.Expire{After: 10, Retry: -1}
	b.replace("yaml", false, sub("a", pipeline.View{}), sub("b", pipeline.View{}))
	b.read("A")
	return b
}

func TestWhenChecksFail(t *testing.T) {
	const status, busy, gone, empty = pipeline.FailStatus, pipeline.FailBusy, pipeline.FailSelectorGone, pipeline.FailEmpty
	for name, c := range map[string]struct {
		checks       []checks
		after        int // 0 means 10
		selectorGone bool
		failures     int // then; -1 if the page expired
		events       []string
	}{
		"two failures say nothing":      {checks: []checks{{n: 2, class: status}}, failures: 2},
		"three are told once":           {checks: []checks{{n: 9, class: status}}, failures: 9, events: []string{"failing"}},
		"two and a success":             {checks: []checks{{n: 2, class: status}, {n: 1}, {n: 2, class: status}}, failures: 2},
		"a recovery":                    {checks: []checks{{n: 9, class: status}, {n: 3}}, events: []string{"failing", "recovered"}},
		"a second time":                 {checks: []checks{{n: 9, class: status}, {n: 1}, {n: 9, class: status}}, failures: 9, events: []string{"failing", "recovered", "failing"}},
		"the tenth ends it":             {checks: []checks{{n: 10, class: status}}, failures: -1, events: []string{"failing", "expired"}},
		"different failures":            {checks: []checks{{n: 5, class: status}, {n: 5, class: pipeline.FailDNS}}, failures: -1, events: []string{"failing", "expired"}},
		"never":                         {checks: []checks{{n: 40, class: status}}, after: -1, failures: 40, events: []string{"failing"}},
		"after one":                     {checks: []checks{{n: 1, class: status}}, after: 1, failures: -1, events: []string{"expired"}},
		"after twelve":                  {checks: []checks{{n: 11, class: status}}, after: 12, failures: 11, events: []string{"failing"}},
		"a hundred busy ones":           {checks: []checks{{n: 100, class: busy}}},
		"nine more":                     {checks: []checks{{n: 109, class: busy}}, failures: 9, events: []string{"failing"}},
		"ten more":                      {checks: []checks{{n: 110, class: busy}}, failures: -1, events: []string{"failing", "expired"}},
		"busy ones take nothing back":   {checks: []checks{{n: 9, class: status}, {n: 50, class: busy}}, failures: 9, events: []string{"failing"}},
		"nor hide the tenth":            {checks: []checks{{n: 9, class: status}, {n: 50, class: busy}, {n: 1, class: status}}, failures: -1, events: []string{"failing", "expired"}},
		"a failure interrupts the busy": {checks: []checks{{n: 99, class: busy}, {n: 1, class: status}, {n: 100, class: busy}}, failures: 1},
		"a success interrupts the busy": {checks: []checks{{n: 99, class: busy}, {n: 1}, {n: 100, class: busy}}},
		"the selector is gone":          {checks: []checks{{n: 30, class: gone}}, events: []string{"selector_gone"}},
		"the text is empty":             {checks: []checks{{n: 30, class: empty}}, events: []string{"selector_gone"}},
		"it counts where it shall":      {checks: []checks{{n: 10, class: gone}}, selectorGone: true, failures: -1, events: []string{"selector_gone", "failing", "expired"}},
		"it takes failures back":        {checks: []checks{{n: 9, class: status}, {n: 1, class: gone}}, events: []string{"failing", "recovered", "selector_gone"}},
		"offline":                       {checks: []checks{{n: 50, class: pipeline.FailDNS, offline: true}}},
		"offline takes nothing back":    {checks: []checks{{n: 9, class: status}, {n: 50, class: status, offline: true}}, failures: 9, events: []string{"failing"}},
		"nor hides the tenth":           {checks: []checks{{n: 9, class: status}, {n: 50, class: status, offline: true}, {n: 1, class: status}}, failures: -1, events: []string{"failing", "expired"}},
		"offline leaves busy ones":      {checks: []checks{{n: 60, class: busy}, {n: 5, class: busy, offline: true}, {n: 49, class: busy}}, failures: 9, events: []string{"failing"}},
	} {
		b := watched(t)
		if c.after != 0 {
			b.rules.Expire.After = c.after
		}
		b.rules.SelectorGone = c.selectorGone
		if got := b.failing(c.checks...); !slices.Equal(got, c.events) {
			t.Errorf("%s: got events %v, want %v", name, got, c.events)
		}
		if expired := b.p.Incarnation == ""; expired != (c.failures < 0) {
			t.Errorf("%s: got expired %v", name, expired)
		} else if !expired && b.p.Failures != c.failures {
			t.Errorf("%s: got %d failures, want %d", name, b.p.Failures, c.failures)
		}
	}
}

func TestAHealthEventSaysSinceWhen(t *testing.T) {
	b := watched(t)
	for range 2 {
		b.due()
		b.failed(pipeline.FailStatus)
		first := one[checkDone](b).Time
		for range 2 {
			b.due()
			b.failed(pipeline.FailDNS)
		}
		if h := one[healthEvent](b).Health; h.Event != pipeline.HealthFailing || h.Since != first || h.Count != 3 || h.Class != pipeline.FailDNS || h.ID != flow.HealthID("failing", b.p.Incarnation, b.p.Check) {
			t.Errorf("got %+v, want it failing since %v", h, first)
		}
		b.due()
		b.unchanged()
		if h := one[healthEvent](b).Health; h.Event != pipeline.HealthRecovered || h.Since != first || h.Count != 3 || h.Document != "" || h.Time != one[checkDone](b).Time {
			t.Errorf("got %+v, want it recovered of failing since %v", h, first)
		}
	}
}

func TestEveryClassOfFailureCounts(t *testing.T) {
	for _, class := range []string{
		pipeline.FailDNS, pipeline.FailRefused, pipeline.FailTLS, pipeline.FailStatus, pipeline.FailTimeout, pipeline.FailAddress, pipeline.FailNetwork,
		pipeline.FailRedirect, pipeline.FailType, pipeline.FailUnreadable, pipeline.FailTooLarge, pipeline.FailURL, "one of a later version",
	} {
		b := watched(t)
		b.failing(checks{n: 9, class: class})
		if b.p.Failures != 9 || len(b.subs) != 2 {
			t.Errorf("%s: got %d failures and %d subscriptions after 9", class, b.p.Failures, len(b.subs))
		}
		b.failing(checks{n: 1, class: class})
		if b.p.Incarnation != "" || len(b.gone) != 2 {
			t.Errorf("%s: got page %+v after 10", class, b.p)
		}
	}
}

func TestAPageExpires(t *testing.T) {
	b := watched(t)
	b.subscribe("c", main)
	b.unchanged() // which is not against both
	life := b.p.Incarnation
	b.failing(checks{n: 9, class: pipeline.FailStatus})
	since, check, last := b.p.FailedSince, b.p.Check+1, b.now
	b.failing(checks{n: 1, class: pipeline.FailTimeout})
	at := one[checkDone](b).Time
	if !at.After(last) || !since.Before(last) {
		t.Fatalf("got the last check at %v, the first failure at %v", at, since)
	}
	wantStamps(b, "c api 4 (0,0] S/3", "a yaml 5 (0,1] S/1/0", "b yaml 6 (0,1] S/1/1")
	for _, s := range all[stamp](b.out) {
		if s.End != flow.EndExpired || s.Tell != pipeline.StatusTimeout {
			t.Errorf("got %+v, want it ended by expiry", s)
		}
	}
	want := flow.Outage{
		Page: page, Incarnation: life, First: 4, Stamp: 6, Time: at, Since: since, Class: pipeline.FailTimeout, Reason: "why", Failures: 10, Lineage: "S",
	}
	if got := one[outage](b).Outage; got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if e := one[pageEnded](b); e.Incarnation != life || e.Expiry == nil || e.Expiry.Failures != 10 {
		t.Errorf("got %+v", e)
	}
	health := pipeline.Health{
		ID: flow.HealthID("expired", life, check), Event: "expired", Time: at, URL: page,
		Class: pipeline.FailTimeout, Reason: "why", Since: since, Count: 10, Sinks: []string{"s"},
	}
	if got := one[healthEvent](b).Health; !reflect.DeepEqual(got, health) {
		t.Errorf("got %+v, want %+v", got, health)
	}
	if one[deleteState](b).All {
		t.Error("what expired is cleared")
	}
	none[wakeAt](b)
	none[requestCheck](b)
	none[withdraw](b)
	for _, x := range b.gone {
		if x.Time != at || x.Class != pipeline.FailTimeout || x.Reason != "why" || x.End != flow.EndExpired || x.Until == flow.Forever {
			t.Errorf("got %+v listed", x)
		}
	}
	wantPage := Page{URL: page, Expired: 3, Origins: []originCount{{"api", 1, 0}, {"yaml", 2, 0}}, Progress: Progress{Records: 11}, Expiry: &Expiry{Time: at, Class: pipeline.FailTimeout, Reason: "why", Failures: 10}}
	if !reflect.DeepEqual(normal(b.p), wantPage) {
		t.Errorf("got page %+v, want %+v", b.p, wantPage)
	}
	for _, a := range []action{wake{}, checkNow{}, expire{Receiver: "s"}} {
		if out := b.do(a); len(out) != 0 {
			t.Errorf("%T: got %+v of an expired page", a, out)
		}
	}
}

func TestWhatBringsExpiredOnesBack(t *testing.T) {
	list := []pipeline.Subscription{sub("a", pipeline.View{}), sub("b", pipeline.View{})}
	changed := slices.Clone(list)
	changed[0].Keywords = []string{"k", "l"}
	type want struct {
		standing, expired int
		code              int
	}
	for name, c := range map[string]struct {
		do   func(*bench)
		want want
	}{
		"the same list again": {func(b *bench) { b.replace("yaml", false, list...) }, want{0, 2, 0}},
		"a list that resumes": {func(b *bench) {
			b.do(replace{Origin: "yaml", Resume: true, Subscriptions: list, Expired: b.expired("")})
		}, want{2, 0, 0}},
		"a changed entry":             {func(b *bench) { b.replace("yaml", false, changed...) }, want{1, 1, 0}},
		"an entry that is missing":    {func(b *bench) { b.replace("yaml", false, list[1]) }, want{0, 1, 0}},
		"an empty list":               {func(b *bench) { b.replace("yaml", false) }, want{0, 0, 0}},
		"another origin's list":       {func(b *bench) { b.replace("watch", false, list[0]) }, want{1, 1, 0}},
		"another origin's empty list": {func(b *bench) { b.replace("watch", false) }, want{0, 2, 0}},
		"subscribe":                   {func(b *bench) { b.subscribe("a", pipeline.View{}) }, want{1, 1, 0}},
		"subscribe another":           {func(b *bench) { b.subscribe("a", main) }, want{1, 2, 0}},
		"cancel":                      {func(b *bench) { b.cancel("a") }, want{0, 1, 0}},
		"cancel nobody":               {func(b *bench) { b.cancel("c") }, want{0, 2, flow.CodeNotFound}},
		"resume one":                  {func(b *bench) { b.resume("a", "") }, want{1, 1, 0}},
		"resume all":                  {func(b *bench) { b.resume("", "") }, want{2, 0, 0}},
		"resume nobody":               {func(b *bench) { b.resume("c", "") }, want{0, 2, flow.CodeNotFound}},
	} {
		b := watched(t)
		b.failing(checks{n: 10, class: pipeline.FailStatus})
		old := b.gone[subscriptionName(whole, "a")].Incarnation
		c.do(b)
		decided(b, c.want.code)
		if got := (want{len(b.subs), len(b.gone), c.want.code}); got != c.want || b.p.Expired != got.expired {
			t.Errorf("%s: got %+v (%d counted), want %+v", name, got, b.p.Expired, c.want)
		}
		if lives := b.p.Incarnation != ""; lives != (c.want.standing > 0) {
			t.Errorf("%s: got a page that lives: %v", name, lives)
		}
		if c.want.standing == 0 {
			none[requestCheck](b)
			none[stamp](b)
		}
		if (b.p.Expiry == nil) != (c.want.standing > 0 || c.want.expired == 0) {
			t.Errorf("%s: got expiry %+v", name, b.p.Expiry)
		}
		if cleared := b.p.URL == ""; cleared != (c.want.standing+c.want.expired == 0) {
			t.Errorf("%s: got page %+v", name, b.p)
		}
		for _, s := range b.subs {
			if s.Incarnation == old || s.From != 0 || s.End != "" || s.PageIncarnation == "S/1" {
				t.Errorf("%s: got %+v, want a new subscription from a fresh baseline", name, s)
			}
		}
		if c.want.standing > 0 {
			r := one[requestCheck](b).Request
			if r.BodyHash != "" || r.Check != 1 {
				t.Errorf("%s: got %+v, want a first check", name, r)
			}
			for i, d := range r.Documents {
				b.text(d.ID, "B", i, len(r.Documents))
			}
			if s := all[newVersion](b.out); len(s) != 1 || s[0].Snapshot.Previous != 0 {
				t.Errorf("%s: got %+v, want a baseline", name, s)
			}
		}
	}
}

func TestCancellingAnExpiredOneWithdrawsIt(t *testing.T) {
	b := watched(t)
	b.failing(checks{n: 10, class: pipeline.FailStatus})
	b.cancel("a")
	if w := one[withdraw](b).Withdraw; w.Subscription != "S/1/0" || w.Receiver.Sink != "s" || w.Page != page {
		t.Errorf("got %+v", w)
	}
	none[deleteState](b)
	b.replace("yaml", false)
	if w := one[withdraw](b).Withdraw; w.Subscription != "S/1/1" || !one[deleteState](b).All {
		t.Errorf("got %+v, want b withdrawn and the page cleared", b.out)
	}
	if e := one[pageEnded](b); e != (pageEnded{}) {
		t.Errorf("got %+v, want an end of no life, behind which nothing of the page is kept", e)
	}
}

func TestAKeptPageExpires(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*bench)
		kept  bool // lives and is kept
		still bool // is listed as expired
	}{
		"kept again":                  {func(b *bench) { b.replace("yaml", true) }, false, true},
		"kept again, with more":       {func(b *bench) { b.replace("yaml", true, sub("n", main)) }, false, true},
		"kept again, resumed":         {func(b *bench) { b.do(replace{Origin: "yaml", Keep: true, Resume: true}) }, true, false},
		"kept by another":             {func(b *bench) { b.replace("watch", true) }, true, true},
		"not kept any more":           {func(b *bench) { b.replace("yaml", false) }, false, false},
		"not kept by another":         {func(b *bench) { b.replace("watch", false) }, false, true},
		"a list of one client":        {func(b *bench) { b.do(replace{Origin: "yaml", Client: "a"}) }, false, true},
		"resumed":                     {func(b *bench) { b.resume("", "") }, true, false},
		"resumed for another":         {func(b *bench) { b.resume("x", "") }, false, true},
		"subscribed to and cancelled": {func(b *bench) { b.subscribe("x", pipeline.View{}); b.cancel("x") }, false, true},
		"a receiver that recovers":    {func(b *bench) { b.resume("", "s") }, false, true},
	} {
		b := newBench(t)
		b.rules.Expire = pipeline.Expire{After: 10, Retry: -1}
		b.replace("yaml", true)
		b.failing(checks{n: 10, class: pipeline.FailStatus})
		if b.p.Expiry == nil || !slices.Equal(b.p.Expiry.Keep, []string{"yaml"}) || b.p.Incarnation != "" {
			t.Fatalf("got %+v, want the page expired for yaml", b.p)
		}
		c.do(b)
		if got := len(b.p.Keep) > 0; got != c.kept {
			t.Errorf("%s: got kept by %v", name, b.p.Keep)
		}
		if got := b.p.Expiry != nil; got != c.still {
			t.Errorf("%s: got expiry %+v", name, b.p.Expiry)
		}
		if cleared := b.p.URL == ""; cleared != (!c.kept && !c.still) {
			t.Errorf("%s: got page %+v", name, b.p)
		}
	}
}

func TestAPageExpiresAgain(t *testing.T) {
	b := watched(t)
	b.replace("watch", true)
	b.failing(checks{n: 10, class: pipeline.FailStatus})
	b.subscribe("a", pipeline.View{})
	b.replace("other", true)
	b.failing(checks{n: 10, class: pipeline.FailDNS})
	if got, want := b.p.Expiry.Keep, []string{"other", "watch"}; !slices.Equal(got, want) || b.p.Expiry.Class != pipeline.FailDNS {
		t.Errorf("got %+v, want both kept origins and the last failure", b.p.Expiry)
	}
	if x := b.gone[subscriptionName(whole, "a")]; len(b.gone) != 2 || b.p.Expired != 2 || x.Class != pipeline.FailDNS || x.Origin != "api" {
		t.Errorf("got %+v listed", b.gone)
	}
	if x := b.gone[subscriptionName(whole, "b")]; x.Class != pipeline.FailStatus {
		t.Errorf("got %+v, want the end that it had", x)
	}
}

func TestAPartlyReadPageDoesNotExpire(t *testing.T) {
	b := watched(t)
	b.rules.SelectorGone = true
	b.subscribe("c", main)
	b.unchanged()
	id := flow.DocumentID(page, main)
	for i := range 15 {
		for b.p.Open == nil {
			b.due()
		}
		o := b.outcome(flow.OutcomeFailed)
		o.Document, o.Part, o.Parts, o.Class = id, 1, 2, pipeline.FailSelectorGone
		b.text(whole, fmt.Sprint(i), 0, 2)
		b.found(o)
		if got := len(all[healthEvent](b.out)) == 1; got != (i == 0) {
			t.Errorf("round %d: got %v", i, healths(b.out))
		}
	}
	d := b.p.Document(id)
	if b.p.Failures != 0 || d.GoneSince.IsZero() {
		t.Errorf("got %+v", b.p)
	}
	since := d.GoneSince
	b.due()
	b.text(whole, "x", 0, 2)
	b.text(id, "x", 1, 2)
	h := one[healthEvent](b).Health
	if h.Event != pipeline.HealthRecovered || h.Document != id || h.Since != since || h.ID != flow.HealthID("recovered", b.p.Incarnation+"/"+id, b.p.Check) {
		t.Errorf("got %+v", h)
	}
	b.due()
	b.text(whole, "y", 0, 2)
	b.text(id, "y", 1, 2)
	none[healthEvent](b)
	if h.Time.Sub(since) < time.Minute {
		t.Errorf("got it told at %v, gone since %v", h.Time, since)
	}
}
