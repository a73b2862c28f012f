package match

import (
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// The history of a page is a ring of its last changes, and how many there have been. It
// outlives the page's expiry and is written with the changes.
//
//	history        how many records were written
//	history SLOT   record n, counted from 0, in slot n modulo MaxHistory
const history = "history"

// Bounds of the history.
const (
	MaxHistory  = 20 // records of a page
	MaxMatches  = 50 // notifications in one record
	maxKeywords = 20 // keywords of one notification
)

// ChangeRecord is one change of a page, or its expiry, and whom it told.
type ChangeRecord struct {
	// N is how many records of the page there were before.
	N int `json:"n"`
	// ID is the change's; empty for an expiry.
	ID       string    `json:"id,omitempty"`
	Document string    `json:"document,omitempty"`
	Version  uint64    `json:"version,omitempty"`
	Check    uint64    `json:"check,omitempty"`
	Time     time.Time `json:"time"` // of the check
	// Expired says why the page was given up, where this is no change.
	Expired string `json:"expired,omitempty"`
	// Matches are the notifications that it made, at most MaxMatches; Omitted says how many
	// more there were.
	Matches []Notified `json:"matches,omitempty"`
	Omitted int        `json:"omitted,omitempty"`
}

// Notified is one notification.
type Notified struct {
	Notification string            `json:"notification"` // its ID
	Client       string            `json:"client"`
	Receiver     pipeline.Receiver `json:"receiver"`
	// Keywords are those that it tells of, each once; only some where there are very many.
	Keywords []string `json:"keywords,omitempty"`
}

// History returns the last changes of the page whose state st is, the newest first.
func History(st flow.State) ([]ChangeRecord, error) {
	n, err := written(st)
	if err != nil {
		return nil, err
	}
	var all []ChangeRecord
	for i := n; i > 0 && i > n-MaxHistory; i-- {
		v, ok, err := st.Get(slot(i - 1))
		if err != nil {
			return nil, err
		}
		var r ChangeRecord
		if ok {
			if err := get(v, &r); err != nil {
				return nil, err
			}
		}
		if !ok || r.N != i-1 {
			break // the stage wrote or cleared it meanwhile
		}
		all = append(all, r)
	}
	return all, nil
}

func slot(n int) string { return name(history, strconv.Itoa(n%MaxHistory)) }

// written returns how many records there have been.
func written(st flow.State) (n int, err error) {
	v, ok, err := st.Get(history)
	if err != nil || !ok {
		return 0, err
	}
	return n, get(v, &n)
}

// remember adds r to the history, in place of the oldest record.
func remember(st flow.State, r ChangeRecord) error {
	var err error
	if r.N, err = written(st); err != nil {
		return err
	}
	if err := put(st, slot(r.N), r); err != nil {
		return err
	}
	return put(st, history, r.N+1)
}

// clearHistory forgets all records.
func clearHistory(st flow.State) error {
	n, err := written(st)
	if err != nil || n == 0 {
		return err
	}
	names := []string{history}
	for i := range min(n, MaxHistory) {
		names = append(names, slot(i))
	}
	return deleteAll(st, names)
}

// note adds n, which goes to one receiver, to what r told.
func (r *ChangeRecord) note(to pipeline.Receiver, n pipeline.Notification) {
	if len(r.Matches) == MaxMatches {
		r.Omitted++
		return
	}
	m := Notified{Notification: n.ID, Client: n.Client, Receiver: to}
	for _, d := range n.Diffs {
		if len(m.Keywords) == maxKeywords {
			break
		}
		if !slices.Contains(m.Keywords, d.Keyword) {
			m.Keywords = append(m.Keywords, d.Keyword)
		}
	}
	r.Matches = append(r.Matches, m)
}
