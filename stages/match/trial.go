package match

import (
	"fmt"
	"reflect"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
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
	// Value is what the option is set to.
	Value string `json:"value"`
	// More and Fewer are how many differences would have been reported in addition, and how many
	// would not have been.
	More  int `json:"more"`
	Fewer int `json:"fewer"`
	// Notifications is how many notifications there would have been.
	Notifications int `json:"notifications"`
}

// vary sets o of s to its other value, which it returns. It returns false where no other value could change anything.
func vary(o pipeline.Option, s *pipeline.Subscription) (value string, ok bool) {
	v := o.Field(s)
	before := v.Interface()
	switch {
	case o.Name == "match_case" && s.Stem, o.Name == "near" && (s.Keywords == nil || s.NewItems), o.Name == "restless" && len(s.Keywords) > 0:
		return "", false // it has no effect
	case o.Name == "match" && s.WithDefaults().Match != pipeline.MatchTerms:
		v.SetString(pipeline.MatchTerms)
	case o.Name == "match":
		v.SetString(pipeline.MatchPhrase)
	case o.Name == "restless":
		v.SetString(pipeline.RestlessTell)
	case o.Name == "near" && s.Near != pipeline.NearRow:
		v.SetString(pipeline.NearRow)
	case o.Kind() == reflect.Bool && o.Name != "new_items":
		v.SetBool(!v.Bool())
	default:
		v.SetZero()
	}
	switch value = fmt.Sprint(v); {
	case o.Name == "events":
		value = "added, removed"
	case o.Kind() != reflect.Bool && v.IsZero():
		value = "none"
	}
	return value, !reflect.DeepEqual(before, v.Interface())
}

// Try returns what s would have reported of changes, as the pipeline matches them, and what each
// other option would have changed.
func Try(changes []flow.Change, s pipeline.Subscription, languages *text.Languages) Trial {
	t := Trial{Notifications: Preview(changes, s, languages)}
	reported := countReported(t.Notifications)
	for _, o := range pipeline.Options() {
		other := s
		if !o.Matching {
			continue
		}
		value, ok := vary(o, &other)
		if !ok {
			continue
		}
		found := Preview(changes, other, languages)
		e := OptionEffect{Option: o.Name, Value: value, Notifications: len(found)}
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
