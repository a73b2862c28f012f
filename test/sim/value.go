package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/oracle"
)

// pageValue is what a page says of documents that are a value: a number with its unit, and a word.
type pageValue struct {
	number int
	unit   string
	word   string // empty where the page has none
}

// valueWords are words, some of which differ by a sign or by case only.
var valueWords = []string{"fine", "Fine", "fine!", "C", "C++", "★", "★★", "sold out", ""}

func newPageValue(r *rand.Rand) pageValue {
	return pageValue{r.IntN(21) - 10, pick(r, []string{"", "", "", "EUR", "USD"}), pick(r, valueWords)}
}

// text returns the value that v reads, as a reader extracts it.
func (x pageValue) text(v pipeline.Value) string {
	if v.Word {
		return x.word
	}
	return strings.TrimSpace(fmt.Sprint(x.number, " ", x.unit))
}

// renderValue returns the text of a document that is a value; ok is false where the page has none.
func (p pageRevision) renderValue(v pipeline.Value) (d renderedText, ok bool) {
	text := p.value.text(v)
	return renderedText{
		content: text + string(pipeline.BlockEnd), title: p.title, page: oracle.Page{{Text: text}}, challenge: p.challenge, value: p.value,
	}, text != ""
}

// conditions are what subscriptions to numbers, and to words, ask for.
var (
	numberConditions = []pipeline.Condition{{}, {}, {Below: "3"}, {Above: "0"}, {ChangesBy: "4"}, {ChangesBy: "50%"}, {Below: "-2", Above: "6.5"}}
	wordConditions   = []pipeline.Condition{{}, {}, {Becomes: "fine"}, {Becomes: "★★"}}
)

// setCondition gives s, a subscription to a value, a random condition, and removes the options that a value does not
// allow.
func setCondition(r *rand.Rand, s *pipeline.Subscription) {
	s.Keywords, s.Events, s.MinChange = nil, nil, pipeline.MinChange{}
	s.Condition = pick(r, numberConditions)
	if s.Value.Word {
		s.Condition = pick(r, wordConditions)
	}
}

// expectedValueChange returns what must be told of a change to s, a subscription to a value; nil for nothing.
func expectedValueChange(s pipeline.Subscription, before, after pageValue) *pipeline.ValueChange {
	if s.Value.Word {
		c := &pipeline.ValueChange{Name: "Value", Old: before.word, New: after.word}
		if s.Becomes == "" {
			return c
		}
		c.Condition = "becomes " + s.Becomes
		if strings.EqualFold(before.word, s.Becomes) || !strings.EqualFold(after.word, s.Becomes) {
			return nil
		}
		return c
	}
	c := &pipeline.ValueChange{Name: "Value", Old: fmt.Sprint(before.number), New: fmt.Sprint(after.number), Unit: after.unit}
	if before.unit != after.unit && before.unit != "" {
		c.Old += " " + before.unit
	}
	a, b := before.number, after.number
	by := max(a-b, b-a)
	switch s.Condition {
	case pipeline.Condition{}:
		return c
	case pipeline.Condition{Below: "3"}:
		c.Condition = "below 3"
		if a >= 3 && b < 3 {
			return c
		}
	case pipeline.Condition{Above: "0"}:
		c.Condition = "above 0"
		if a <= 0 && b > 0 {
			return c
		}
	case pipeline.Condition{ChangesBy: "4"}:
		c.Condition = "changed by 4 or more"
		if by >= 4 {
			return c
		}
	case pipeline.Condition{ChangesBy: "50%"}:
		c.Condition = "changed by 50% or more"
		if by > 0 && 2*by >= max(a, -a) {
			return c
		}
	case pipeline.Condition{Below: "-2", Above: "6.5"}:
		c.Condition = "below -2"
		if a >= -2 && b < -2 {
			return c
		}
		c.Condition = "above 6.5"
		if a <= 6 && b > 6 {
			return c
		}
	}
	return nil
}

// compareValue checks the notifications of one change to one subscription to a value.
func (w *world) compareValue(t *pageModel, r *subscriptionSpan, before, v version, all map[notificationKey]*publishedNotification) error {
	want := expectedValueChange(r.sub, before.text.value, v.text.value)
	w.stats.Expectations++
	for _, sink := range r.sub.Sinks {
		n := all[notificationKey{r.life.id, r.incarnation, r.sub.Client, sink, v.n}]
		same := func(other *publishedNotification) bool { return reflect.DeepEqual(other.Digest, r.sub.Collected()) }
		switch {
		case n == nil && want != nil && t.isRepeat(r, v, sink, all, same):
			w.stats.SuppressedRepeats++
		case n == nil && want != nil && !r.cancelled:
			return fmt.Errorf("missed: sink %s was not told %s", sink, want)
		case n == nil:
		case want == nil:
			return fmt.Errorf("invented: sink %s was told %v", sink, n.Notification.Value)
		case t.isRepeat(r, v, sink, all, same):
			return fmt.Errorf("told twice: sink %s was told the same of another subscription", sink)
		default:
			n.matched = true
			w.stats.ExpectedNotifications++
			w.stats.ValueChanges++
			x := n.Notification
			diffs := []pipeline.Diff{
				{Event: pipeline.Removed, Text: before.text.value.text(*r.sub.Value), Edit: 1},
				{Event: pipeline.Added, Text: v.text.value.text(*r.sub.Value), Edit: 1},
			}
			for i := range diffs {
				diffs[i].Snippet = diffs[i].Text
			}
			if !reflect.DeepEqual(x.Value, want) || !reflect.DeepEqual(x.Diffs, diffs) || x.URL != r.sub.URL || !x.Time.Equal(v.snapshot.Time) ||
				!reflect.DeepEqual(n.Digest, r.sub.Collected()) {
				return fmt.Errorf("wrong: sink %s was told %s by %+v in %+v, want %s by %+v", sink, x.Value, x.Diffs, n.Addressed, want, diffs)
			}
		}
	}
	return nil
}
