package index

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// historySize is how many checks of a page are remembered.
const historySize = 20

// CheckRecord is what one check found.
type CheckRecord struct {
	// Check is the check's number; 0 where the page was pushed.
	Check uint64    `cbor:"1,keyasint"`
	Time  time.Time `cbor:"2,keyasint"`
	// Result is pipeline.OutcomeRead, OutcomeUnchanged or OutcomeFailed. Class is that of
	// the first failure, of the page or one of its documents; Reason says why it failed, or
	// why a text that was read is no version.
	Result string `cbor:"3,keyasint"`
	Class  string `cbor:"4,keyasint,omitempty"`
	Reason string `cbor:"5,keyasint,omitempty"`
	// Offline says that the failure does not count, since nothing could be reached.
	Offline bool              `cbor:"6,keyasint,omitempty"`
	Status  int               `cbor:"7,keyasint,omitempty"`
	Bytes   int64             `cbor:"8,keyasint,omitempty"`
	Took    pipeline.Duration `cbor:"9,keyasint,omitempty"`
	// Versions are those that it made, by document.
	Versions map[string]uint64 `cbor:"10,keyasint,omitempty"`
}

// record keeps what a complete check found, which open was; its last outcome is o.
func (a *application) record(o flow.Outcome, open *Open) {
	r := CheckRecord{
		Check: o.Check, Time: a.at(o), Result: flow.OutcomeUnchanged, Class: open.Class, Reason: open.Reason,
		Offline: o.Offline, Status: o.Status, Bytes: o.Bytes, Took: pipeline.Duration(o.Took), Versions: open.Made,
	}
	switch {
	case open.Class != "":
		r.Result = flow.OutcomeFailed
	case open.Again:
		r.Result, r.Reason = flow.OutcomeRead, "other rules make the text now; the page as it was is read by them before it is compared"
	case o.Parts > 0:
		if r.Reason = a.waiting(); r.Reason != "" || len(open.Made) > 0 {
			r.Result = flow.OutcomeRead
		}
	}
	a.p.Records++
	a.emit(Record{r, a.p.Records})
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

// storedRecord is a record as it is kept. Its number puts it in order: clocks are set back,
// and the checks of each life of a page begin at 1.
type storedRecord struct {
	CheckRecord
	N uint64 `cbor:"11,keyasint"`
}

func storeRecord(st flow.State, r Record) error {
	b, err := encode(storedRecord(r))
	if err != nil {
		return err
	}
	return st.Set(recordNames[r.N%historySize], b)
}

// recordNames are the names of records, by their number mod historySize.
var recordNames = func() (names [historySize]string) {
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", historyName, i)
	}
	return names
}()

// History returns the last checks of the page whose state st is, the newest first whatever
// the clock said: also of a page that expired, and of an earlier life of it.
func History(st flow.State) ([]CheckRecord, error) {
	var stored []storedRecord
	for name, v := range st.Scan(historyName) {
		if v.Err != nil {
			return nil, v.Err
		}
		var r storedRecord
		if err := decode(v.Bytes, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		stored = append(stored, r)
	}
	slices.SortFunc(stored, func(a, b storedRecord) int {
		return cmp.Compare(b.N, a.N)
	})
	rs := make([]CheckRecord, len(stored))
	for i, r := range stored {
		rs[i] = r.CheckRecord
	}
	return rs, nil
}
