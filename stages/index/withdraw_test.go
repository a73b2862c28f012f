package index

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// withdrawn returns what the last event takes back, as "receiver incarnation".
func (b *bench) withdrawn() []string {
	var all []string
	for _, o := range b.out {
		if w, ok := o.(Withdraw); ok {
			all = append(all, w.Receiver.ID()+" "+w.Subscription)
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

func TestACancelTakesBackWhatEarlierSinksAreTold(t *testing.T) {
	b := newBench(t)
	b.replace("yaml", false, to("c", "box"))
	incarnation := b.standing("c")[0].Incarnation
	b.replace("yaml", false, to("c", "other"))
	b.wantWithdrawn() // it is still to be told
	b.replace("yaml", false, to("c", "third"))
	b.cancel("c")
	b.wantWithdrawn("box "+incarnation, "other "+incarnation, "third "+incarnation)
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
		b.rules.ExpireAfter = 1
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
	b.rules.ExpireAfter = 1
	main := sub("c", pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}})
	b.replace("yaml", false, sub("c", pipeline.View{}), main)
	b.failed(pipeline.FailDNS)
	b.replace("yaml", false, main)
	b.wantWithdrawn()
	last := b.expired("c")[0].Incarnation
	b.replace("yaml", false)
	b.wantWithdrawn("s " + last)
}
