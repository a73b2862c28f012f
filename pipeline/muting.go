package pipeline

import (
	"cmp"
	"slices"
)

// Values of Subscription.Restless: what a subscription to every change is told of places that change at
// nearly every check.
const (
	RestlessMuteNumbers = "mute numbers" // nothing of numbers such as clocks and counters
	RestlessMute        = "mute"         // nothing of numbers, nor of words such as advertisements
	RestlessTell        = "tell"         // everything
)

// Muting says that differences in some places of a document are not told any more, because these places
// change at nearly every check.
type Muting struct {
	// Places shows some of the places, each by its text with the number in brackets, such as
	// "By Hera · [1,604] views". Count is how many there are.
	Places []string `json:"places"`
	Count  int      `json:"count"`
	// Whole says that nothing else of the page changes. Then the places are told until the
	// subscription says Restless.
	Whole bool `json:"whole,omitempty"`
}

// MaxNamedPlaces is how many places a Muting shows.
const MaxNamedPlaces = 5

// With returns m together with the places of other. Either may be nil.
func (m *Muting) With(other *Muting) *Muting {
	if m == nil || other == nil {
		return cmp.Or(m, other)
	}
	places := append(slices.Clone(m.Places), other.Places...)
	return &Muting{Places: places[:min(len(places), MaxNamedPlaces)], Count: m.Count + other.Count, Whole: m.Whole || other.Whole}
}

// IsZero reports whether m names no place.
func (m Muting) IsZero() bool { return m.Count == 0 }
