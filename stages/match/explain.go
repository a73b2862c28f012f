package match

import (
	"fmt"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Explainer says why keywords did not match one change. It runs the Matcher on that change and
// on whole versions, with the options of a subscription and with others. It is safe for
// concurrent use.
type Explainer struct {
	change    *flow.Change
	old, new  *flow.Change
	languages *text.Languages
	relinked  []string
}

// NewExplainer returns an Explainer of c, the change between the versions old and new of a
// document. c has no groups if both versions have the same words.
func NewExplainer(c *flow.Change, old, new string, languages *text.Languages) *Explainer {
	return &Explainer{change: c, old: changeAddingAll(old, c.Language), new: changeAddingAll(new, c.Language), languages: languages}
}

// SetRelinked says which items have another link, id or GUID in the new version than in the old one, and the same
// words.
func (e *Explainer) SetRelinked(texts []string) { e.relinked = texts }

// changeAddingAll returns a change that adds all of content.
func changeAddingAll(content, language string) *flow.Change {
	all := flow.Difference{Event: pipeline.Added, Text: content}
	return &flow.Change{Language: language, Groups: []flow.Group{{Coarse: true, Differences: []flow.Difference{all}}}}
}

// WhyNot says in one sentence, without a full stop, why the change did not match keyword for
// the subscription of r. It gives the most specific reason; it is empty if the change does
// match. An empty keyword asks about a subscription without keywords.
func (e *Explainer) WhyNot(r flow.Stamped, keyword string) string {
	n := e.change.Version
	switch {
	case n <= r.From:
		return fmt.Sprintf("the subscription began at version %d and matches later versions only; this is version %d", r.From, n)
	case n > r.Until:
		return fmt.Sprintf("the subscription ended with version %d; this is version %d", r.Until, n)
	case keyword != "" && len(text.Tokens(keyword)) == 0:
		return "it contains no word"
	case len(e.change.Groups) == 0:
		return "the two versions have the same words; only spacing, punctuation or markup changed"
	}
	s := r.Subscription.WithDefaults()
	if keyword == "" {
		return e.whyNoEdit(s)
	}
	s.Keywords = []string{keyword}
	if e.findSpelling(e.change, s) != "" {
		return ""
	}
	if why := e.whyTooSmall(s); why != "" {
		return why
	}
	s.MinChange = pipeline.MinChange{}
	for _, reason := range []func(pipeline.Subscription) string{e.whyNotNewItem, e.whyOtherEvent, e.whyMoved, e.whyNotNear, e.whyUnchanged, e.whyOtherOptions, e.whyWordsMissing} {
		if why := reason(s); why != "" {
			return why
		}
	}
	return "its words are on the page, but no difference contains them as the subscription compares them"
}

// whyNoEdit returns why the change has no edit for s, a subscription without keywords.
func (e *Explainer) whyNoEdit(s pipeline.Subscription) string {
	s.Keywords = nil
	if e.findSpelling(e.change, s) != "" {
		return ""
	}
	if s.Value != nil {
		s.Condition = pipeline.Condition{}
		if v, ok := s.ValueChange(oldAndNewValue(e.change)); ok {
			return fmt.Sprintf("the value changed from %s to %s, which meets no condition of the subscription", v.Old, strings.TrimSpace(v.New+" "+v.Unit))
		}
		return "the value is the same number, written in another way"
	}
	if why := e.whyTooSmall(s); why != "" {
		return why
	}
	s.MinChange = pipeline.MinChange{}
	if s.NewItems {
		return "no item came, and the subscription asks only for new items (new_items: true)"
	}
	if len(s.Events) == 1 {
		asked := s.Events[0]
		both := s
		if both.Events = nil; e.findSpelling(e.change, both) != "" {
			return fmt.Sprintf("nothing was %s, and the subscription asks only for what is %s", asked, asked)
		}
	}
	given := s.Restless
	if s.Restless = pipeline.RestlessMuteNumbers; given == pipeline.RestlessMute && e.findSpelling(e.change, s) != "" {
		return "only places changed whose words change at nearly every check; restless: mute numbers would report them"
	}
	if s.Restless = pipeline.RestlessTell; given != pipeline.RestlessTell && e.findSpelling(e.change, s) != "" {
		return "only places changed that change at nearly every check, or times that passed; restless: tell would report them"
	}
	if s.Moved = true; e.findSpelling(e.change, s) != "" {
		return "text only moved to another place; moved: true would report it"
	}
	return "the two versions have the same words; only the borders of paragraphs changed"
}

// findSpelling returns the spelling with which c matches the keyword of s, and "" if it does not. If s has
// no keyword, it returns the first text that c reports.
func (e *Explainer) findSpelling(c *flow.Change, s pipeline.Subscription) string {
	m := NewMatcher([]Entry{{Subscription: s}}, e.languages)
	matches := m.Match(c)
	if len(matches) == 0 {
		return ""
	}
	if len(s.Keywords) == 0 {
		return matches[0].Diffs[0].Text
	}
	for _, found := range m.index(c.Language).parts[0].findHits(c) {
		for _, h := range found.list {
			if s.Wants(eventOfSide[h.side]) && (s.Moved || !h.moved) && (!s.NewItems || h.of.Item == flow.ItemNew) {
				return h.spelling()
			}
		}
	}
	return ""
}

// spelling returns the words of the keyword as the text spells them.
func (h *hit) spelling() string {
	switch {
	case len(h.tokens) > 1:
		return h.joinWords()
	case h.near != nil:
		w := h.near.blocks[h.near.block].Window
		return w.Text[w.Tokens[h.near.tokens[0]][0]:w.Tokens[h.near.tokens[1]-1][1]]
	}
	return h.w.Text[h.w.Tokens[h.core[0]][0]:h.w.Tokens[h.core[1]-1][1]]
}

// whyTooSmall says why the keyword of s, which the change matches, is kept back by min_change. It
// returns an empty string if the change does not match in any case.
func (e *Explainer) whyTooSmall(s pipeline.Subscription) string {
	least := s.MinChange
	if s.MinChange = (pipeline.MinChange{}); e.findSpelling(e.change, s) == "" {
		return ""
	}
	changed, length := e.change.Size.Changed(s.Moved), e.change.Size.Length()
	if least.Share == 0 {
		return fmt.Sprintf("the change is too small: %s, and min_change asks for %d", countChangedTokens(changed), least.Tokens)
	}
	return fmt.Sprintf("the change is too small: %s of %d, which is %.2f%%, and min_change asks for %s",
		countChangedTokens(changed), length, 100*float64(changed)/float64(max(length, 1)), least)
}

func countChangedTokens(n int) string {
	if n == 1 {
		return "1 changed token"
	}
	return fmt.Sprintf("%d changed tokens", n)
}

func (e *Explainer) whyOtherEvent(s pipeline.Subscription) string {
	if len(s.Events) != 1 {
		return ""
	}
	asked := s.Events[0]
	if s.Events = nil; e.findSpelling(e.change, s) == "" {
		return ""
	}
	was := pipeline.Added
	if asked == was {
		was = pipeline.Removed
	}
	return fmt.Sprintf("it was %s, and the subscription asks only for what is %s", was, asked)
}

func (e *Explainer) whyNotNewItem(s pipeline.Subscription) string {
	if !s.NewItems {
		return ""
	}
	if s.NewItems = false; e.findSpelling(e.change, s) == "" {
		return ""
	}
	return "it is in no item that came, and the subscription asks only for new items (new_items: true)"
}

func (e *Explainer) whyMoved(s pipeline.Subscription) string {
	if s.Moved = true; e.findSpelling(e.change, s) == "" {
		return ""
	}
	return "it only moved to another place; moved: true would report it"
}

func (e *Explainer) whyUnchanged(s pipeline.Subscription) string {
	in := e.versionsContaining(s)
	switch {
	case in == "":
		return ""
	case s.Match == pipeline.MatchTerms && len(text.Tokens(s.Keywords[0])) > 1:
		return "its words are together in " + in + ", but no difference contains all of them with at least one added or removed"
	}
	switch s.Near {
	case pipeline.NearRow:
		return "it is in " + in + ", but nothing changed in a row or paragraph that has it"
	case pipeline.NearBlock:
		return "it is in " + in + ", but nothing changed in a paragraph that has it"
	}
	for _, item := range e.relinked {
		if e.findSpelling(changeAddingAll(item, e.change.Language), s) != "" {
			return "it is in " + in + ", in an item whose link changed and whose words did not; that is the same item, and text that stays is not reported"
		}
	}
	return "it is in " + in + ", but no changed passage has more or fewer of it; text that stays is not reported"
}

// whyNotNear says with which near the change beside the keyword of s would be reported.
func (e *Explainer) whyNotNear(s pipeline.Subscription) string {
	if s.Near == pipeline.NearRow || s.NewItems {
		return ""
	}
	if s.Near == "" {
		if s.Near = pipeline.NearBlock; e.findSpelling(e.change, s) != "" {
			return "it stayed, and text beside it changed; near: block would report that"
		}
	}
	if s.Near = pipeline.NearRow; e.findSpelling(e.change, s) != "" {
		return "it stayed, and text in its row changed; near: row would report that"
	}
	return ""
}

// versionsContaining says which versions contain the keyword of s; empty for none.
func (e *Explainer) versionsContaining(s pipeline.Subscription) string {
	s.Events, s.NewItems = nil, false
	before, after := e.findSpelling(e.old, s) != "", e.findSpelling(e.new, s) != ""
	switch {
	case before && after:
		return "both versions"
	case before:
		return "the old version"
	case after:
		return "the new version"
	}
	return ""
}

// option is another way to compare a keyword.
type option struct {
	name string
	set  func(*pipeline.Subscription)
}

var (
	optionCase  = option{"match_case: false", func(s *pipeline.Subscription) { s.MatchCase = false }}
	optionMarks = option{"ignore_diacritics: true", func(s *pipeline.Subscription) { s.IgnoreDiacritics = true }}
	optionStem  = option{"stem: true", func(s *pipeline.Subscription) { s.Stem, s.MatchCase = true, false }}
	optionStop  = option{"filter_stopwords: true", func(s *pipeline.Subscription) { s.FilterStopwords = true }}
)

// optionSets are those that make more text match, the smallest change first.
var optionSets = [][]option{
	{optionCase}, {optionMarks}, {optionStem}, {optionCase, optionMarks}, {optionStem, optionMarks}, {optionStop}, {optionStem, optionMarks, optionStop},
}

// whyOtherOptions says with which options the keyword would match, or be in one of the versions.
func (e *Explainer) whyOtherOptions(s pipeline.Subscription) string {
	t := s
	if t.Match = pipeline.MatchTerms; s.Match == pipeline.MatchPhrase && e.findSpelling(e.change, t) != "" {
		return "its words are in what changed, but not next to each other in this order; match: terms would report them"
	}
	found := ""
	for _, os := range optionSets {
		t := s
		var names []string
		for _, o := range os {
			o.set(&t)
			names = append(names, o.name)
		}
		if t.FilterStopwords != s.FilterStopwords && e.hasStopword(s) {
			continue // without them it is another keyword: "out of stock" would match "in stock"
		}
		with := strings.Join(names, " and ")
		if as := e.findSpelling(e.change, t); as != "" {
			return fmt.Sprintf("it is there as %q, which would match with %s", as, with)
		}
		if found != "" || t.FilterStopwords != s.FilterStopwords {
			continue // without its stop words it is another keyword
		}
		if in := e.versionsContaining(t); in != "" {
			found = fmt.Sprintf("with %s it is in %s, but no changed passage has more or fewer of it there either", with, in)
		}
	}
	return found
}

// hasStopword reports whether the keyword of s contains a stop word.
func (e *Explainer) hasStopword(s pipeline.Subscription) bool {
	norm := e.languages.Normalizer(comparisonLanguage(s, e.change))
	for _, t := range text.Tokens(s.Keywords[0]) {
		if norm.IsStop(s.Keywords[0][t.Start:t.End]) {
			return true
		}
	}
	return false
}

// whyWordsMissing says which words of the keyword are missing.
func (e *Explainer) whyWordsMissing(s pipeline.Subscription) string {
	keyword := s.Keywords[0]
	norm := e.languages.Normalizer(comparisonLanguage(s, e.change))
	var missing []string
	tokens, stop := text.Tokens(keyword), 0
	for _, t := range tokens {
		word := keyword[t.Start:t.End]
		one := s
		one.Keywords = []string{word}
		if norm.IsStop(word) {
			stop++
			if s.FilterStopwords {
				continue
			}
		}
		if e.versionsContaining(one) == "" {
			missing = append(missing, fmt.Sprintf("%q", word))
		}
	}
	why := ""
	switch {
	case s.FilterStopwords && stop == len(tokens):
		return "it has only stop words, which are not skipped then, and neither version contains it as written"
	case len(tokens) == 1:
		why = "it is in neither version"
	case len(missing) == 1:
		why = "its word " + missing[0] + " is in neither version"
	case len(missing) > 1:
		why = "its words " + strings.Join(missing, ", ") + " are in neither version"
	case s.Match == pipeline.MatchTerms:
		return "its words are on the page, but not all in one passage"
	default:
		return "its words are on the page, but not next to each other in this order"
	}
	if s.Stem && !norm.HasStemmer() {
		why += "; words are not stemmed, because the language of the document is unknown or has no stemmer"
	}
	return why
}

// comparisonLanguage is the language in which a keyword of s is compared with c.
func comparisonLanguage(s pipeline.Subscription, c *flow.Change) string {
	if s.Language != "" {
		return s.Language
	}
	return c.Language
}

// Count returns how often content, a text in the given language, contains keyword as the
// subscription s compares it. If its words may be in any order, Count returns the number of
// passages that contain all of them.
func Count(content, language, keyword string, s pipeline.Subscription, languages *text.Languages) int {
	s = s.WithDefaults()
	s.Keywords, s.Events, s.Near = []string{keyword}, nil, ""
	x := NewMatcher([]Entry{{Subscription: s}}, languages).index(language).parts[0].patternIndex
	n := 0
	for _, g := range changeAddingAll(content, language).Groups {
		search := newSearch(x, &g)
		passages := 0
		search.run(func(int32, int, place) { passages++ }, func(_ int32, _, more int) { passages += more })
		for p, t := range search.tallies {
			if x.patterns[p].anyOrder {
				n += passages
			} else {
				n += t.counts[newSide]
			}
		}
	}
	return n
}
