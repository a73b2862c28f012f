package inspect

import (
	"fmt"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/restless"
)

// Proposal names a place of a document whose words change often, and an option that leaves it out. The option was tried
// on the last two texts: it leaves out the place, and nothing else.
type Proposal struct {
	// Document is the ID of the document.
	Document string `json:"document"`
	// Place shows the place, with what changes in brackets.
	Place string `json:"place"`
	// Changes is how many of its last changes are known, and InARow how many of them came at the check behind the one
	// before.
	Changes int `json:"changes"`
	InARow  int `json:"in_a_row"`
	// Option is the field of the subscription, and Value is what to set it to, or to add to it where it is a list: ignore,
	// remove, flip_flop or restless. The last is proposed where no other leaves out just the place.
	Option string `json:"option"`
	Value  string `json:"value"`
}

// IsNew reports whether the last check found out that the place changes often.
func (p Proposal) IsNew() bool { return p.Changes == restless.MinTurns }

// YAML returns the option as a line of a configuration.
func (p Proposal) YAML() string {
	if p.Option == OptionIgnore || p.Option == OptionRemove {
		return p.Option + ": ['" + strings.ReplaceAll(p.Value, "'", "''") + "']"
	}
	return p.Option + ": " + p.Value
}

// Why says in one line what p is about.
func (p Proposal) Why() string {
	return fmt.Sprintf("a place changes often: %s; %d of its last %d changes came at the next check", p.Place, p.InARow, p.Changes)
}

// Effect says in a few words what the option does.
func (p Proposal) Effect() string {
	switch p.Option {
	case OptionFlipFlop:
		return "tells only texts that the page did not have just before"
	case OptionRestless:
		return "leaves out places whose words change at nearly every check"
	}
	return "leaves out this place, and nothing else of the last two texts"
}

// Flag returns the option as a flag of the command line.
func (p Proposal) Flag() string {
	return "--" + strings.ReplaceAll(p.Option, "_", "-") + " '" + strings.ReplaceAll(p.Value, "'", `'\''`) + "'"
}

// The options that a Proposal names.
const (
	OptionIgnore   = "ignore"
	OptionRemove   = "remove"
	OptionFlipFlop = "flip_flop"
	OptionRestless = "restless"
)

// Helps reports whether p may help s: s is told of words that change often and did not ask for it, or they keep a text
// from standing (confirm) or from coming again (flip_flop).
func (p Proposal) Helps(s pipeline.Subscription) bool {
	return hearsOfProposals(s) && (p.Option != OptionRestless || isToldOfWords(s))
}

func hearsOfProposals(s pipeline.Subscription) bool {
	return isToldOfWords(s) || s.Confirm > 1 || s.FlipFlop > 0
}

func isToldOfWords(s pipeline.Subscription) bool {
	return len(s.Keywords) == 0 && (s.Restless == "" || s.Restless == pipeline.RestlessMuteNumbers)
}
