package index

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// historySize is how many checks of a page are remembered.
const historySize = 20

// CheckRecord is what one check found.
type CheckRecord struct {
	Check uint64    `cbor:"1,keyasint"`
	Time  time.Time `cbor:"2,keyasint"`
	// Result is pipeline.OutcomeRead, OutcomeUnchanged or OutcomeFailed. Class is that of
	// the first failure, of the page or one of its documents; Reason says why it failed, or
	// why a text that was read is no version.
	Result string `cbor:"3,keyasint"`
	Class  string `cbor:"4,keyasint,omitempty"`
	Reason string `cbor:"5,keyasint,omitempty"`
	// Offline says that the failure does not count, since nothing could be reached.
	Offline bool          `cbor:"6,keyasint,omitempty"`
	Status  int           `cbor:"7,keyasint,omitempty"`
	Bytes   int64         `cbor:"8,keyasint,omitempty"`
	Took    time.Duration `cbor:"9,keyasint,omitempty"`
	// Versions are those that it made, by document.
	Versions map[string]uint64 `cbor:"10,keyasint,omitempty"`
}

// record keeps what a complete check found, which open was; its last outcome is o.
func (a *application) record(o pipeline.Outcome, open *Open) {
	r := CheckRecord{
		Check: o.Check, Time: a.at(o), Result: pipeline.OutcomeUnchanged, Class: open.Class, Reason: open.Reason,
		Offline: o.Offline, Status: o.Status, Bytes: o.Bytes, Took: o.Took, Versions: open.Made,
	}
	switch {
	case open.Class != "":
		r.Result = pipeline.OutcomeFailed
	case open.Again:
		r.Result, r.Reason = pipeline.OutcomeRead, "other rules make the text now; the page as it was is read by them before it is compared"
	case o.Parts > 0:
		if r.Reason = a.waiting(); r.Reason != "" || len(open.Made) > 0 {
			r.Result = pipeline.OutcomeRead
		}
	}
	a.emit(Record{r})
}

// waiting says which document has a text that is no version yet.
func (a *application) waiting() string {
	for _, d := range a.p.Documents {
		if d.Candidate != "" {
			return fmt.Sprintf("a new text stood for %d of %d checks", d.Stood, d.View.Confirm)
		}
	}
	return ""
}

func storeRecord(st pipeline.State, r CheckRecord) error {
	b, err := encode(r)
	if err != nil {
		return err
	}
	return st.Set(recordNames[r.Check%historySize], b)
}

// recordNames are the names of records, by the number of the check mod historySize.
var recordNames = func() (names [historySize]string) {
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", historyName, i)
	}
	return names
}()

// History returns the last checks of the page whose state st is, the newest first: also of a
// page that expired, and of an earlier life of it.
func History(st pipeline.State) ([]CheckRecord, error) {
	var rs []CheckRecord
	for name, v := range st.Scan(historyName) {
		if v.Err != nil {
			return nil, v.Err
		}
		var r CheckRecord
		if err := decode(v.Bytes, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b CheckRecord) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Check, a.Check))
	})
	return rs, nil
}
