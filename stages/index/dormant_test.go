package index

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// dormantBench returns a bench whose page has a baseline for the clients a and b, and the text of b's own document.
func dormantBench(t *testing.T, e pipeline.Expire, of ...pipeline.Expire) *bench {
	b := newBench(t)
	b.rules.Expire = e
	list := []pipeline.Subscription{sub("a", pipeline.View{}), sub("b", pipeline.View{})}
	for i, e := range of {
		list[i].Expire = e
	}
	b.replace("yaml", false, list...)
	b.read("A")
	return b
}

// told returns what the last event told, as client and status.
func (b *bench) told() (told []string) {
	for _, s := range all[stamp](b.out) {
		if s.Tell != "" {
			told = append(told, s.Subscription.Client+" "+s.Tell)
		}
	}
	if n := len(all[outage](b.out)); (n == 1) != (len(told) > 0) {
		b.Errorf("%d outages tell %v", n, told)
	}
	return told
}

// failOnce makes the next check fail when it is due.
func (b *bench) failOnce(class string) {
	b.due()
	b.failed(class)
}

func TestAPageIsDormantUntilItAnswers(t *testing.T) {
	b := dormantBench(t, pipeline.Expire{After: 10, Retry: 30 * 24 * time.Hour})
	life := b.p.Incarnation
	b.failing(checks{n: 9, class: pipeline.FailStatus})
	since := b.p.FailedSince
	b.failOnce(pipeline.FailStatus)
	if want := []string{"a timeout", "b timeout"}; !slices.Equal(b.told(), want) {
		t.Fatalf("told %v, want %v", b.told(), want)
	}
	if h := one[healthEvent](b).Health; h.Event != pipeline.HealthDormant || !slices.Equal(h.Sinks, []string{"s"}) || h.Count != 10 {
		t.Errorf("got %+v", h)
	}
	for range 12 { // the interval doubles to a day
		b.failOnce(pipeline.FailStatus)
		if len(b.told()) > 0 || len(healths(b.out)) > 0 {
			t.Fatalf("told %v and %v while it is dormant", b.told(), healths(b.out))
		}
	}
	if got := b.p.Due.Sub(b.p.Asked); got < 20*time.Hour || got > 30*time.Hour {
		t.Errorf("the next check is after %v, want about a day", got)
	}
	b.due()
	b.text(whole, "B", 0, 1)
	if want := []string{"a recovered", "b recovered"}; !slices.Equal(b.told(), want) {
		t.Errorf("told %v, want %v", b.told(), want)
	}
	o := one[outage](b).Outage
	if o.Since != since || o.Failures != 22 || o.First+1 != o.Stamp || o.Incarnation != life {
		t.Errorf("got %+v", o)
	}
	kinds := slices.DeleteFunc(slices.Collect(func(yield func(reflect.Type) bool) {
		for _, o := range b.out {
			yield(reflect.TypeOf(o))
		}
	}), func(t reflect.Type) bool { return t != reflect.TypeFor[outage]() && t != reflect.TypeFor[newVersion]() })
	if want := []reflect.Type{reflect.TypeFor[outage](), reflect.TypeFor[newVersion]()}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want the recovery told before the difference", kinds)
	}
	if v := one[newVersion](b).Snapshot; v.Previous != 1 || v.N != 2 || v.Incarnation != life {
		t.Errorf("got %+v, want the difference to the last good version", v)
	}
	if p := b.p; p.Failures != 0 || p.Dormant != 0 || !p.DormantSince.IsZero() || p.Paced != 10*time.Minute {
		t.Errorf("got %+v", p.Progress)
	}
}

func TestEachSubscriptionHasItsOwnPatience(t *testing.T) {
	b := dormantBench(t, pipeline.Expire{After: 10, Retry: 24 * time.Hour}, pipeline.Expire{After: 3}, pipeline.Expire{After: 5, Retry: -1})
	var told [][]string
	for range 5 {
		b.failOnce(pipeline.FailStatus)
		told = append(told, b.told())
	}
	want := [][]string{nil, nil, {"a timeout"}, nil, {"b timeout"}}
	if !reflect.DeepEqual(told, want) || len(b.subs) != 1 || b.p.Incarnation == "" {
		t.Fatalf("told %v, want %v; %d subscriptions stand", told, want, len(b.subs))
	}
	if b.p.DormantSince.IsZero() {
		t.Error("all that wait were told, and the page is not dormant")
	}
	// Who comes meanwhile makes it look again at once, and is told by itself.
	b.subscribe("c", pipeline.View{})
	if len(all[requestCheck](b.out)) != 1 {
		t.Error("no check for a new subscription")
	}
	b.failed(pipeline.FailStatus)
	for range 4 {
		b.failOnce(pipeline.FailStatus)
	}
	if want := []string{"c timeout"}; !slices.Equal(b.told(), want) {
		t.Errorf("told %v, want %v", b.told(), want)
	}
	// New settings are no new client.
	s := sub("a", pipeline.View{})
	s.Expire.After, s.Tags = 3, []string{"x"}
	b.replace("yaml", false, s)
	b.failOnce(pipeline.FailStatus)
	if len(b.told()) > 0 || b.p.DormantSince.IsZero() {
		t.Errorf("told %v again", b.told())
	}
	b.due()
	b.unchanged()
	if want := []string{"a recovered", "c recovered"}; !slices.Equal(b.told(), want) {
		t.Errorf("told %v, want %v", b.told(), want)
	}
}

func TestWhoIsNeverToldKeepsThePageAwake(t *testing.T) {
	b := dormantBench(t, pipeline.Expire{After: 4, Retry: time.Hour}, pipeline.Expire{After: -1})
	b.failing(checks{n: 20, class: pipeline.FailStatus})
	if !b.p.DormantSince.IsZero() || b.p.Paced != 10*time.Minute || len(b.subs) != 1 {
		t.Errorf("got %+v and %d subscriptions", b.p.Progress, len(b.subs))
	}
}

func TestAKeptPageIsDormantToo(t *testing.T) {
	b := newBench(t)
	b.rules.Expire = pipeline.Expire{After: 10, Retry: 24 * time.Hour}
	b.do(replace{Origin: "yaml", Keep: true, Expire: pipeline.Expire{After: 2, Retry: 3 * time.Hour}})
	b.read("A")
	b.failing(checks{n: 2, class: pipeline.FailStatus})
	if h := one[healthEvent](b).Health; h.Event != pipeline.HealthDormant || b.p.DormantSince.IsZero() {
		t.Fatalf("got %+v", h)
	}
	b.due()
	b.unchanged()
	if h := one[healthEvent](b).Health; h.Event != pipeline.HealthRecovered || !b.p.DormantSince.IsZero() {
		t.Errorf("got %+v", h)
	}
	for range 12 {
		if b.failOnce(pipeline.FailStatus); b.p.Incarnation == "" {
			break
		}
	}
	if b.p.Expiry == nil || !slices.Equal(b.p.Expiry.Keep, []string{"yaml"}) {
		t.Errorf("got %+v, want it expired", b.p)
	}
}

func TestASilentHostIsAskedMoreRarely(t *testing.T) {
	b := dormantBench(t, pipeline.Expire{After: -1})
	var gaps []time.Duration
	for range 5 {
		b.failOnce(pipeline.FailTimeout)
		gaps = append(gaps, b.p.Paced)
	}
	if want := []time.Duration{20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour, time.Hour}; !slices.Equal(gaps, want) {
		t.Errorf("got %v, want %v", gaps, want)
	}
	if b.failOnce(pipeline.FailStatus); b.p.Paced != 10*time.Minute {
		t.Errorf("got %v after an answer", b.p.Paced)
	}
}

// TestPauseWhileDormant: a client that was told of the timeout and pauses is told once, after the pause, that the page
// answers.
func TestPauseWhileDormant(t *testing.T) {
	for name, test := range map[string]struct {
		paused []string
		back   bool // the page answers during the pause
	}{
		"a page that answers during the pause": {[]string{"a"}, true},
		"a page that answers later":            {[]string{"a"}, false},
		"a page of which all clients pause":    {[]string{"a", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := dormantBench(t, pipeline.Expire{After: 2, Retry: 30 * 24 * time.Hour})
			b.failOnce(pipeline.FailStatus)
			b.failOnce(pipeline.FailStatus)
			if len(b.told()) != 2 {
				t.Fatalf("told %v", b.told())
			}
			var want []string
			for _, c := range test.paused {
				b.pause(c)
				want = append(want, c+" recovered")
			}
			if test.back {
				b.due()
				b.read("A")
				if got := b.told(); !slices.Equal(got, []string{"b recovered"}) {
					t.Errorf("during the pause: told %v", got)
				}
			} else if len(want) == 1 {
				want = append(want, "b recovered")
			}
			for _, c := range test.paused {
				b.resume(c, "")
			}
			b.due()
			b.read("A")
			if got := b.told(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				t.Errorf("after the pause: told %v, want %v", got, want)
			}
			if o := one[outage](b).Outage; o.Since.IsZero() {
				t.Error("it does not say since when")
			}
			b.due()
			b.read("A")
			if len(b.told()) > 0 || b.p.Dormant != 0 {
				t.Errorf("told again: %v", b.told())
			}
		})
	}
}
