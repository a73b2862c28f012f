package index

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// to is sub with other sinks.
func to(client string, sinks ...string) pipeline.Subscription {
	s := sub(client, pipeline.View{})
	s.Sinks = sinks
	return s
}

func clients(b *bench) (standing, expired []string) {
	for _, s := range b.standing("") {
		standing = append(standing, s.Subscription.Client)
	}
	for _, x := range b.expired("") {
		expired = append(expired, x.Subscription.Client)
	}
	return standing, expired
}

func wantClients(b *bench, standing, expired []string) {
	b.Helper()
	if s, x := clients(b); !slices.Equal(s, standing) || !slices.Equal(x, expired) {
		b.Errorf("got %v standing and %v expired, want %v and %v", s, x, standing, expired)
	}
}

func TestAReceiverExpires(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("one", "a"), to("two", "a", "b"), to("other", "c"))
	b.read("A")
	b.expire("a")
	wantClients(b, []string{"other", "two"}, []string{"one"})
	wantStamps(b, "one yaml 4 (0,1] S/1/0")
	if s := one[stamp](b); s.End != flow.EndReceiver {
		t.Errorf("got %+v, want it ended by its receiver", s)
	}
	if x := b.expired("")[0]; x.End != flow.EndReceiver || x.Reason != "gone" || x.Class != "" || x.Time != b.now {
		t.Errorf("got %+v listed", x)
	}
	none[withdraw](b) // delivery has given up what it had
	none[pageEnded](b)
	none[healthEvent](b)
	none[decide](b)
	if got := b.p.Document(whole).Subscriptions; got != 2 || b.p.Intervals[0].N != 2 || b.p.Expired != 1 {
		t.Errorf("got %+v", b.p)
	}

	b.expire("a") // told again, as for each notification that is given up
	if len(b.out) != 0 {
		t.Errorf("got %+v the second time", b.out)
	}
	b.expire("nobody")
	if len(b.out) != 0 || slices.Contains(b.p.Unreachable, "nobody") {
		t.Errorf("got %+v of a receiver that the page does not have", b.out)
	}

	b.expire("b")
	wantClients(b, []string{"other"}, []string{"one", "two"})
	b.resume("", "a")
	decided(b, 0)
	wantClients(b, []string{"one", "other", "two"}, nil)
	for _, s := range all[stamp](b.out) {
		if s.From != 1 || s.PageIncarnation != "S/1" || s.Incarnation == "S/1/0" || s.Incarnation == "S/1/1" {
			t.Errorf("got %+v, want a new subscription behind the version that stands", s)
		}
	}
	if got := b.p.Unreachable; !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v unreachable, want b still", got)
	}
	b.expire("a")
	wantClients(b, []string{"other"}, []string{"one", "two"})
}

func TestARecoveryOfOneOfTwo(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("two", "a", "b"))
	b.expire("a")
	b.resume("", "a") // nothing ended, but a does not count as expired any more
	decided(b, 0)
	none[stamp](b)
	b.expire("b")
	wantClients(b, []string{"two"}, nil)
	b.resume("", "c")
	if len(b.out) != 0 {
		t.Errorf("got %+v of the recovery of a stranger", b.out)
	}
}

func TestOneOfTwoExpiredReceiversRecovers(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("two", "a", "b"))
	b.expire("a")
	b.expire("b")
	one[pageEnded](b)
	b.resume("", "a")
	wantClients(b, []string{"two"}, nil)
	b.expire("a") // b has not recovered
	wantClients(b, nil, []string{"two"})
}

func TestASubscriptionMayNameAnExpiredReceiver(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("two", "a", "b"))
	b.expire("a")
	b.do(subscribe{Origin: "api", Subscription: to("new", "a")})
	decided(b, 0)
	wantClients(b, []string{"new", "two"}, nil)
	b.replace("yaml", false, to("two", "a"))
	wantClients(b, []string{"new", "two"}, nil)
	b.expire("a") // they were probed, and it does not answer
	wantClients(b, nil, []string{"new", "two"})
}

// withdrawn returns what the last event takes back, as "receiver incarnation".
func (b *bench) withdrawn() []string {
	var all []string
	for _, o := range b.out {
		if w, ok := o.(withdraw); ok {
			all = append(all, w.Receiver.Sink+" "+w.Subscription)
		}
	}
	slices.Sort(all)
	return all
}

func (b *bench) wantWithdrawn(want ...string) {
	b.Helper()
	if got := b.withdrawn(); !slices.Equal(got, want) {
		b.Errorf("got %q taken back, want %q", got, want)
	}
}

func TestSinksThatReturnAreTakenBackOnce(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("c", "box"))
	incarnation := b.standing("c")[0].Incarnation
	b.replace("yaml", false, to("c", "other"))
	b.replace("yaml", false, to("c", "box"))
	b.replace("yaml", false)
	b.wantWithdrawn("box "+incarnation, "other "+incarnation)
}

func TestACancelTakesBackWhatEarlierLivesAreTold(t *testing.T) {
	for name, again := range map[string]func(*bench){
		"resume":    func(b *bench) { b.resume("c", "") },
		"subscribe": func(b *bench) { b.subscribe("c", pipeline.View{}) },
		"changed":   func(b *bench) { b.replace("yaml", false, sub("c", pipeline.View{}), to("d", "s")) },
	} {
		b := newBench(t)
		b.rules.Expire.After = 1
		b.subscribe("c", pipeline.View{})
		first := b.standing("c")[0].Incarnation
		b.failed(pipeline.FailDNS)
		again(b)
		second := b.standing("c")[0].Incarnation
		b.cancel("c")
		want := []string{"s " + first, "s " + second}
		slices.Sort(want)
		if got := b.withdrawn(); first == second || !slices.Equal(got, want) {
			t.Errorf("%s: got %q taken back, want %q", name, got, want)
		}
	}
}

func TestATimeoutForTwoIsNotTakenBackForOne(t *testing.T) {
	b := newBench(t)
	b.rules.Expire.After = 1
	main := sub("c", pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}})
	b.replace("yaml", false, sub("c", pipeline.View{}), main)
	b.failed(pipeline.FailDNS)
	b.replace("yaml", false, main)
	b.wantWithdrawn()
	last := b.expired("c")[0].Incarnation
	b.replace("yaml", false)
	b.wantWithdrawn("s " + last)
}
