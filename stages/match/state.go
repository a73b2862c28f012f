package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// The state of a page holds, for each incarnation of it,
//
//	ended INC DOC NAME STAMP  a subscription that ended while a backlog was open; see flow.Stamped.Name
//	tell INC STAMP            a record whose client is to be told of an outage, until it is
//	filter INC DOC            the filter of a large table, until a subscription of the document changes
//
// with NUL between the parts, and beside them its history and its backlog. A value is a format byte and CBOR. The
// subscriptions that stand are in the state of index.
const (
	stateFormat = 3
	nul         = "\x00"
	kindEnded   = "ended"
	kindTell    = "tell"
)

func stateName(parts ...string) string { return strings.Join(parts, nul) }

// handleSubscription notes that s began or ended. What was due before stays due: while a backlog is open, an ended
// subscription is kept for the changes up to its Until, unless it was cancelled.
func (p *Processor) handleSubscription(tx flow.Tx, key string, s *flow.Stamped) error {
	st := tx.State(key)
	if s.Tell != "" {
		if err := storeValue(st, tellName(s.PageIncarnation, s.Stamp), s); err != nil || s.Until == flow.Forever {
			return err // it stands as before
		}
	}
	k, names := tableKey{s.PageIncarnation, s.Document}, []string{strings.TrimPrefix(s.Name(), s.Document)}
	if s.Until < flow.Forever && s.From < s.Until && s.End != flow.EndCancelled {
		b, err := readBacklog(st)
		if err != nil {
			return err
		}
		if !b.empty() {
			names = append(names, endedName(names[0], s.Stamp))
			if err := storeValue(st, k.endedPrefix()+names[1], s); err != nil {
				return err
			}
		}
	}
	if err := dropFilter(st, k); err != nil {
		return err
	}
	p.noteEdits(k, names)
	tx.OnCommit(func() { p.noteEdits(k, names) }) // the table may be in use until then
	return nil
}

// endedName returns the name in a table of a subscription with that name that ended with that stamp.
func endedName(name string, stamp uint64) string { return stateName(name, fmt.Sprintf("%016x", stamp)) }

// tellName is the name of the record with that stamp whose client is to be told of an outage.
func tellName(incarnation string, stamp uint64) string {
	return stateName(kindTell, incarnation, fmt.Sprintf("%016x", stamp))
}

// readRecord returns the record with that name, or nil if there is none.
func readRecord(st flow.State, name string) (*flow.Stamped, error) {
	v, ok, err := st.Get(name)
	if err != nil || !ok {
		return nil, err
	}
	s := new(flow.Stamped)
	return s, decodeValue(v, s)
}

// deleteIncarnation deletes the state of an incarnation.
func deleteIncarnation(st flow.State, incarnation string) error {
	for _, kind := range []string{kindEnded, kindTell, kindFilter} {
		if _, err := deleteUnder(st, stateName(kind, incarnation, "")); err != nil {
			return err
		}
	}
	return nil
}

// deleteUnder deletes what has names that begin with prefix, and returns these names.
func deleteUnder(st flow.State, prefix string) (names []string, err error) {
	for n, v := range st.Scan(prefix) {
		if v.Err != nil {
			return nil, v.Err
		}
		names = append(names, n)
	}
	return names, deleteAll(st, names)
}

func deleteAll(st flow.State, names []string) error {
	for _, n := range names {
		if err := st.Delete(n); err != nil {
			return err
		}
	}
	return nil
}

func storeValue(st flow.State, at string, v any) error {
	b, err := stored.Encode(stateFormat, v)
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return st.Set(at, b)
}

// decodeValue decodes a value. If it cannot, the store is damaged or newer than this program.
func decodeValue(value []byte, into any) error {
	if err := stored.Decode(value, stateFormat, into); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// The history of a page is a ring of its last changes, and their number. It is written with the
// changes, and an expired page keeps it.
//
//	history        how many records were written
//	history SLOT   record n, counted from 0, in slot n modulo MaxHistory
const historyName = "history"

// MaxHistory is how many changes of a page are remembered at most.
const MaxHistory = 20

// Bounds of one record of the history.
const (
	maxRecordMatches = 50 // notifications in one record
	maxMatchKeywords = 20 // keywords of one notification
)

// ChangeRecord is one change of a page, or what its clients were told of an outage, with the notifications that it
// caused.
type ChangeRecord struct {
	// N is how many records of the page came before this one.
	N int `json:"n"`
	// ID is that of the change; empty for an outage.
	ID       string    `json:"id,omitempty"`
	Document string    `json:"document,omitempty"`
	Version  uint64    `json:"version,omitempty"`
	Check    uint64    `json:"check,omitempty"`
	Time     time.Time `json:"time"` // of the check
	// Status is that of what was told of an outage, pipeline.StatusTimeout, StatusRecovered or StatusExpired, and
	// Reason says why; empty for a change.
	Status string `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Matches are its notifications, at most maxRecordMatches. Omitted is how many more there were.
	Matches []Notified `json:"matches,omitempty"`
	Omitted int        `json:"omitted,omitempty"`
	// Size is how much changed.
	Size flow.Size `json:"size,omitzero"`
	// Muted says that all of its differences are muted.
	Muted bool `json:"muted,omitempty"`
}

// Notified is one notification.
type Notified struct {
	Notification string            `json:"notification"` // its ID
	Client       string            `json:"client"`
	Receiver     pipeline.Receiver `json:"receiver"`
	// Keywords are the distinct keywords in it; only the first ones if there are very many. There
	// are none if the subscription has none.
	Keywords []string `json:"keywords,omitempty"`
}

// History returns the last changes of the page whose state st is, the newest first.
func History(st flow.State) ([]ChangeRecord, error) {
	n, err := recordsWritten(st)
	if err != nil {
		return nil, err
	}
	var all []ChangeRecord
	for i := n; i > 0 && i > n-MaxHistory; i-- {
		v, ok, err := st.Get(historySlotName(i - 1))
		if err != nil {
			return nil, err
		}
		var r ChangeRecord
		if ok {
			if err := decodeValue(v, &r); err != nil {
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

func historySlotName(n int) string { return stateName(historyName, strconv.Itoa(n%MaxHistory)) }

// recordsWritten returns how many records were ever written.
func recordsWritten(st flow.State) (n int, err error) {
	v, ok, err := st.Get(historyName)
	if err != nil || !ok {
		return 0, err
	}
	return n, decodeValue(v, &n)
}

// isMuted reports whether all differences of c are muted for everybody who does not ask for them.
func isMuted(c *flow.Change) bool {
	muted := false
	for _, g := range c.Groups {
		muted = muted || len(g.Differences) > 0
		if g.Moved || slices.ContainsFunc(g.Differences, func(d flow.Difference) bool { return mutedBy(d) != muteNumbers }) {
			return false
		}
	}
	return muted
}

// addToHistory adds r to the history, in place of the oldest record. Of muted changes in a row that notified
// nobody it keeps the last one.
func addToHistory(st flow.State, r ChangeRecord) error {
	n, err := recordsWritten(st)
	if err != nil {
		return err
	}
	if r.N = n; r.Muted && len(r.Matches) == 0 && n > 0 {
		var last ChangeRecord
		v, ok, err := st.Get(historySlotName(n - 1))
		if err == nil && ok {
			err = decodeValue(v, &last)
		}
		if err != nil {
			return err
		}
		if last.Muted && len(last.Matches) == 0 && last.Document == r.Document {
			r.N--
		}
	}
	if err := storeValue(st, historySlotName(r.N), r); err != nil {
		return err
	}
	return storeValue(st, historyName, r.N+1)
}

// clearHistory deletes all records.
func clearHistory(st flow.State) error {
	n, err := recordsWritten(st)
	if err != nil || n == 0 {
		return err
	}
	names := []string{historyName}
	for i := range min(n, MaxHistory) {
		names = append(names, historySlotName(i))
	}
	return deleteAll(st, names)
}

// addNotification adds n, which goes to the receiver to, to the matches of r.
func (r *ChangeRecord) addNotification(to pipeline.Receiver, n pipeline.Notification) {
	if len(r.Matches) == maxRecordMatches {
		r.Omitted++
		return
	}
	m := Notified{Notification: n.ID, Client: n.Client, Receiver: to}
	for _, d := range n.Diffs {
		if len(m.Keywords) == maxMatchKeywords {
			break
		}
		if d.Keyword != "" && !slices.Contains(m.Keywords, d.Keyword) {
			m.Keywords = append(m.Keywords, d.Keyword)
		}
	}
	r.Matches = append(r.Matches, m)
}
