package match

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

func TestCount(t *testing.T) {
	const content = "Argus is out of stock.\nARGUS, the argus: gods and a god, out of the stock"
	for _, c := range []struct {
		keyword string
		s       pipeline.Subscription
		want    int
	}{
		{"zeus", pipeline.Subscription{}, 0},
		{"argus", pipeline.Subscription{}, 1},
		{"argus", pipeline.Subscription{IgnoreCase: true}, 3},
		{"argus", pipeline.Subscription{IgnoreCase: true, Events: []pipeline.Event{pipeline.Removed}}, 3},
		{"god", pipeline.Subscription{Stem: true}, 2},
		{"out of stock", pipeline.Subscription{}, 1},
		{"out of stock", pipeline.Subscription{Match: pipeline.MatchTerms}, 2},
		{"stock out", pipeline.Subscription{Match: pipeline.MatchTerms}, 2},
		{"argus zeus", pipeline.Subscription{Match: pipeline.MatchTerms}, 0},
		{"argus argus", pipeline.Subscription{}, 0},
	} {
		if got := Count(content, "en", c.keyword, c.s, text.NewLanguages()); got != c.want {
			t.Errorf("%q with %+v: got %d, want %d", c.keyword, c.s, got, c.want)
		}
	}
	if got := Count(strings.Repeat("argus ", 1000), "", "argus", pipeline.Subscription{}, text.NewLanguages()); got != 1000 {
		t.Errorf("got %d of 1000", got)
	}
}
