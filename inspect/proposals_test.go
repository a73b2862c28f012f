package inspect

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestProposalHelps(t *testing.T) {
	ignore, mute := Proposal{Option: OptionIgnore}, Proposal{Option: OptionRestless}
	for _, c := range []struct {
		name         string
		sub          pipeline.Subscription
		ignore, mute bool
	}{
		{"every change", pipeline.Subscription{}, true, true},
		{"it was answered", pipeline.Subscription{Restless: pipeline.RestlessMute}, false, false},
		{"keywords", pipeline.Subscription{Keywords: []string{"a"}}, false, false},
		{"keywords that wait for a text to stand", pipeline.Subscription{Keywords: []string{"a"}, View: pipeline.View{Confirm: 2}}, true, false},
		{"keywords of a page that takes turns", pipeline.Subscription{Keywords: []string{"a"}, View: pipeline.View{FlipFlop: 2}}, true, false},
	} {
		if i, m := ignore.Helps(c.sub), mute.Helps(c.sub); i != c.ignore || m != c.mute {
			t.Errorf("%s: ignore helps: %v, restless: mute helps: %v", c.name, i, m)
		}
	}
}
