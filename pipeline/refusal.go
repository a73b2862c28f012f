package pipeline

// Codes of refused commands. Programs in other languages read them (Code in the schema of
// health events), so that each keeps its number; there is no 2.
const (
	CodeURL      = 1 // the document's URL is invalid
	CodeKeywords = 3 // no keyword, or one that is invalid
	CodeEvents   = 4 // no event that exists
	CodeConflict = 5 // the pair of document and client has a subscription
	CodeFormat   = 6 // anything else is wrong with the command
	CodeNotFound = 7 // there is nothing to cancel or resume
)

// Refusal is why index did not do what a command asked for.
type Refusal struct {
	// Code is one of the Code constants.
	Code int
	// Message says it in words for the user.
	Message string
}

func (r *Refusal) Error() string { return r.Message }
