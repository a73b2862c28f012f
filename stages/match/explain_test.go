package match

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// versionTexts are the texts of the groups, each block on a line.
func versionTexts(groups []groupTexts) (old, new string) {
	for _, g := range groups {
		old += strings.ReplaceAll(g.old, "|", "\n") + "\n"
		new += strings.ReplaceAll(g.new, "|", "\n") + "\n"
	}
	return old, new
}

func TestWhyNot(t *testing.T) {
	edit := func(old, new string) []groupTexts { return []groupTexts{{old: old, new: new}} }
	for _, c := range []struct {
		name   string
		groups []groupTexts
		sub    pipeline.Subscription
		want   string
	}{
		{"it did", edit("in stock", "out of stock"), keywords("out of stock"), ""},
		{"no word", edit("a", "b"), keywords("!!!"), "it contains no word"},
		{"no difference", nil, keywords("argus"), "the two versions have the same words; only spacing, punctuation or markup changed"},
		{"only what is added", edit("x argus", "x"), with(keywords("argus"), onlyAdded), "it was removed, and the subscription asks only for what is added"},
		{"only what is removed", edit("x", "x argus"), with(keywords("argus"), onlyRemoved), "it was added, and the subscription asks only for what is removed"},
		{"only moved", []groupTexts{{old: "argus sees", new: "argus sees", moved: true}, {old: "x", new: "y"}}, keywords("argus"),
			"it only moved to another place; moved: true would report it"},
		{"in neither version", edit("x", "y"), keywords("argus"), "it is in neither version"},
		{"a word in neither version", edit("out x", "out y"), keywords("out of"), `its word "of" is in neither version`},
		{"words in neither version", edit("out x", "out y"), keywords("out of stock"), `its words "of", "stock" are in neither version`},
		{"it stood still", edit("argus x", "argus y"), keywords("argus"),
			"it stayed, and text beside it changed; near: block would report that"},
		{"case", edit("x", "x ARGUS"), with(keywords("argus"), matchCase), `it is there as "ARGUS", which would match with match_case: false`},
		{"marks", edit("x", "x café"), keywords("cafe"), `it is there as "café", which would match with ignore_diacritics: true`},
		{"stems", edit("x", "x the gods"), keywords("god"), `it is there as "gods", which would match with stem: true`},
		{"case and marks", edit("x", "x CAFÉ"), with(keywords("cafe"), matchCase), `it is there as "CAFÉ", which would match with match_case: false and ignore_diacritics: true`},
		{"marks, where case is ignored", edit("x", "x CAFÉ"), keywords("cafe"), `it is there as "CAFÉ", which would match with ignore_diacritics: true`},
		{"stop words", edit("x", "x house of the gods"), keywords("house gods"),
			`its words are in what changed, but not next to each other in this order; match: terms would report them`},
		{"a stop word too many", edit("x", "x stock"), keywords("the stock"), `its word "the" is in neither version`},
		{"another meaning without stop words", edit("in stock", "sold out"), keywords("out of stock"), `its word "of" is in neither version`},
		{"stop words, whole phrases only", edit("house of old|gods", "house of|gods new"), keywords("house gods"),
			"its words are on the page, but not next to each other in this order"},
		{"case, and it stood still", edit("ARGUS x", "ARGUS y"), with(keywords("argus"), matchCase),
			"with match_case: false it is in both versions, but no changed passage has more or fewer of it there either"},
		{"another order", edit("x", "x stock of"), keywords("of stock"),
			"its words are in what changed, but not next to each other in this order; match: terms would report them"},
		{"far apart", edit("x|stock", "x of|stock"), keywords("of stock"), "its words are on the page, but not next to each other in this order"},
		{"terms in two passages", edit("x|y", "x god|y house"), with(keywords("god house"), matchTerms), "its words are on the page, but not all in one passage"},
		{"terms in no difference", edit("god 1 2 3 4 5 6 7 house x", "god 1 2 3 4 5 6 7 house y"), with(keywords("god house"), matchTerms),
			"it stayed, and text beside it changed; near: block would report that"},
		{"terms, one missing", edit("x", "x god"), with(keywords("god house"), matchTerms), `its word "house" is in neither version`},
		{"only stop words", edit("x", "x out"), with(with(keywords("the who"), filterStopwords), matchPhrase),
			"it has only stop words, which are not skipped then, and neither version contains it as written"},
		{"no stemmer", edit("x", "x god"), with(with(keywords("gott"), stemWords), func(s *pipeline.Subscription) { s.Language = "xx" }),
			"it is in neither version; words are not stemmed, because the language of the document is unknown or has no stemmer"},
		{"two keywords, of which one matched", edit("x", "x argus"), keywords("zeus", "argus"), "it is in neither version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			change, _ := changeOf(64, c.groups...)
			old, new := versionTexts(c.groups)
			r := flow.Stamped{From: 1, Until: flow.Forever, Subscription: c.sub}
			if got := NewExplainer(change, old, new, text.NewLanguages()).WhyNot(r, c.sub.Keywords[0]); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestWhyNotRelinked: a keyword in an item of which only the link changed.
func TestWhyNotRelinked(t *testing.T) {
	change, _ := changeOf(64, groupTexts{old: "x", new: "x argus"})
	e := NewExplainer(change, "x\nzeus\nhera", "x argus\nzeus\nhera", text.NewLanguages())
	e.SetRelinked([]string{"zeus\n"})
	for keyword, want := range map[string]string{
		"zeus": "it is in both versions, in an item whose link changed and whose words did not; that is the same item, and text that stays is not reported",
		"hera": "it is in both versions, but no changed passage has more or fewer of it; text that stays is not reported",
	} {
		if got := e.WhyNot(flow.Stamped{From: 1, Until: flow.Forever, Subscription: keywords(keyword)}, keyword); got != want {
			t.Errorf("%s: got %q, want %q", keyword, got, want)
		}
	}
}

func TestWhyNotInTime(t *testing.T) {
	change, _ := changeOf(64, groupTexts{old: "x", new: "x argus"}) // version 2
	e := NewExplainer(change, "x", "x argus", text.NewLanguages())
	for _, c := range []struct {
		from, until uint64
		want        string
	}{
		{1, flow.Forever, ""},
		{1, 2, ""},
		{2, flow.Forever, "the subscription began at version 2 and matches later versions only; this is version 2"},
		{0, 1, "the subscription ended with version 1; this is version 2"},
	} {
		if got := e.WhyNot(flow.Stamped{From: c.from, Until: c.until, Subscription: keywords("argus")}, "argus"); got != c.want {
			t.Errorf("from %d until %d: got %q, want %q", c.from, c.until, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	const content = "Argus is out of stock.\nARGUS, the argus: gods and a god, out of the stock"
	for _, c := range []struct {
		keyword string
		s       pipeline.Subscription
		want    int
	}{
		{"zeus", pipeline.Subscription{}, 0},
		{"argus", pipeline.Subscription{MatchCase: true}, 1},
		{"argus", pipeline.Subscription{}, 3},
		{"argus", pipeline.Subscription{Events: []pipeline.Event{pipeline.Removed}}, 3},
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
