package index

import (
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestOriginsAreOfAllThatIsThere(t *testing.T) {
	d := newDesk(t, Config{ExpireAfter: 1})
	origins := func(want ...string) {
		t.Helper()
		if got, err := Origins(d.state()); err != nil || !slices.Equal(got, want) {
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
	d := newDesk(t, Config{ExpireAfter: 1})
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
