package inspect

import (
	"github.com/vokter/vokter/pipeline/flow"
)

// ChangeHistory is what Changes returns.
type ChangeHistory struct {
	URL      string `json:"url"`
	Document string `json:"document"`
	// Versions is how many versions are stored.
	Versions int `json:"versions"`
	// Changes are the changes between them, the oldest first. A version without a changed word is no
	// change, and neither is a baseline.
	Changes []flow.Change `json:"changes"`
	// Proposals are the places whose words change often.
	Proposals []Proposal `json:"proposals,omitempty"`
}
