package inspect

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/match"
)

// Trial is what Try returns: what a subscription would have reported.
type Trial struct {
	// Notifications are those that would have been sent, in the order of the changes. Their IDs are
	// not those of real ones.
	Notifications []pipeline.Notification
	// Options say what other options would have changed. Those that would have changed nothing are
	// left out.
	Options []OptionEffect
}

// OptionEffect says what one other option of a subscription would have changed.
type OptionEffect struct {
	// Option is the field of the subscription, and Value is its other value, such as true.
	Option string `json:"option"`
	Value  string `json:"value"`
	// More and Fewer are how many differences would have been reported in addition, and how many
	// would not have been.
	More  int `json:"more"`
	Fewer int `json:"fewer"`
	// Notifications is how many notifications there would have been.
	Notifications int `json:"notifications"`
}

// optionVariations are the options that Try changes. Set returns the new value, and false where the option
// has no other value that could change anything.
var optionVariations = []struct {
	option string
	set    func(s *pipeline.Subscription) (value string, ok bool)
}{
	{"match_case", func(s *pipeline.Subscription) (string, bool) {
		if s.Stem {
			return "", false // it ignores case
		}
		return flip(&s.MatchCase)
	}},
	{"ignore_diacritics", func(s *pipeline.Subscription) (string, bool) { return flip(&s.IgnoreDiacritics) }},
	{"stem", func(s *pipeline.Subscription) (string, bool) { return flip(&s.Stem) }},
	{"filter_stopwords", func(s *pipeline.Subscription) (string, bool) { return flip(&s.FilterStopwords) }},
	{"match", func(s *pipeline.Subscription) (string, bool) {
		if s.WithDefaults().Match == pipeline.MatchTerms {
			s.Match = pipeline.MatchPhrase
		} else {
			s.Match = pipeline.MatchTerms
		}
		return s.Match, true
	}},
	{"near", func(s *pipeline.Subscription) (string, bool) {
		if s.Keywords == nil || s.NewItems {
			return "", false
		}
		if s.Near != pipeline.NearRow {
			s.Near = pipeline.NearRow
			return s.Near, true
		}
		s.Near = ""
		return "none", true
	}},
	{"new_items", func(s *pipeline.Subscription) (string, bool) {
		given := s.NewItems
		s.NewItems = false
		return "false", given
	}},
	{"moved", func(s *pipeline.Subscription) (string, bool) { return flip(&s.Moved) }},
	{"events", func(s *pipeline.Subscription) (string, bool) {
		if len(s.Events) != 1 {
			return "", false
		}
		s.Events = nil
		return "added, removed", true
	}},
	{"restless", func(s *pipeline.Subscription) (string, bool) {
		given := s.Restless != pipeline.RestlessTell && len(s.Keywords) == 0
		s.Restless = pipeline.RestlessTell
		return pipeline.RestlessTell, given
	}},
	{"min_change", func(s *pipeline.Subscription) (string, bool) {
		given := s.MinChange != pipeline.MinChange{}
		s.MinChange = pipeline.MinChange{}
		return "none", given
	}},
}

// flip inverts option and returns its new value.
func flip(option *bool) (string, bool) {
	*option = !*option
	return fmt.Sprint(*option), true
}

// Try returns what s would have reported of changes, as the pipeline matches them, and what each
// other option would have changed.
func Try(changes []flow.Change, s pipeline.Subscription, languages *text.Languages) Trial {
	t := Trial{Notifications: match.Preview(changes, s, languages)}
	reported := countReported(t.Notifications)
	for _, v := range optionVariations {
		other := s
		value, ok := v.set(&other)
		if !ok {
			continue
		}
		found := match.Preview(changes, other, languages)
		e := OptionEffect{Option: v.option, Value: value, Notifications: len(found)}
		others := countReported(found)
		for r, n := range others {
			e.More += max(n-reported[r], 0)
		}
		for r, n := range reported {
			e.Fewer += max(n-others[r], 0)
		}
		if e.More > 0 || e.Fewer > 0 {
			t.Options = append(t.Options, e)
		}
	}
	return t
}

// reportedDifference is a reported difference. Two options may report the same difference with other texts
// around it.
type reportedDifference struct {
	version uint64
	event   pipeline.Event
	keyword string
	offset  int
}

// countReported counts the differences in notifications, those left out included.
func countReported(notifications []pipeline.Notification) map[reportedDifference]int {
	all := make(map[reportedDifference]int)
	for _, n := range notifications {
		for _, d := range n.Diffs {
			all[reportedDifference{n.Version, d.Event, d.Keyword, d.Offset}]++
		}
		if n.Omitted > 0 {
			all[reportedDifference{version: n.Version}] += n.Omitted
		}
	}
	return all
}
