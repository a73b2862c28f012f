package match

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// The state of a page holds, for each incarnation of it,
//
//	record INC DOC SUB SINCE   a stamped subscription (written with the stamps)
//	expired INC SUB            the last record of a subscription that ended because its page
//	                           was given up, until its client is told (written with the stamps)
//	applied INC                the last stamp applied (written with the stamps)
//	filter INC DOC             see filter.go (written with the changes)
//
// with NUL between the parts, and beside them its history (see history.go). Values begin with a format byte, behind which is JSON.
const (
	format  = 1
	nul     = "\x00"
	record  = "record"
	expired = "expired"
	applied = "applied"
)

func name(parts ...string) string { return strings.Join(parts, nul) }

// applyStamp takes s into the table. One that ends a subscription carries its Until; the
// record that it ends keeps everything else, but hears nothing more at all if it was
// cancelled.
func applyStamp(st flow.State, s *flow.Stamped) error {
	at := name(record, s.PageIncarnation, s.Document, s.Incarnation, fmt.Sprintf("%016x", s.Since))
	var err error
	if s.From >= s.Until || s.End == flow.EndCancelled {
		err = st.Delete(at)
	} else {
		err = put(st, at, s)
	}
	if err == nil && s.End == flow.EndExpired {
		err = put(st, name(expired, s.PageIncarnation, s.Incarnation), s)
	}
	if err != nil {
		return err
	}
	last, err := appliedStamp(st, s.PageIncarnation)
	if err != nil || last >= s.Stamp {
		return err
	}
	return put(st, name(applied, s.PageIncarnation), s.Stamp)
}

// appliedStamp returns the last stamp that was applied, 0 if there was none.
func appliedStamp(st flow.State, incarnation string) (uint64, error) {
	var n uint64
	v, ok, err := st.Get(name(applied, incarnation))
	if err != nil || !ok {
		return 0, err
	}
	return n, get(v, &n)
}

// waitFor returns the last stamp that was applied, and an error of class NotYet if that is
// less than stamp.
func waitFor(st flow.State, incarnation string, stamp uint64) (uint64, error) {
	n, err := appliedStamp(st, incarnation)
	if err == nil && n < stamp {
		err = pipeline.NotYet(errors.New("waiting for stamp " + strconv.FormatUint(stamp, 10) + " behind " + strconv.FormatUint(n, 10)))
	}
	return n, err
}

// load returns the records of a document that hear version or a later one, by name. All
// others are deleted: nothing they could hear will come.
func load(st flow.State, incarnation, document string, version uint64) (map[string]*flow.Stamped, error) {
	records := map[string]*flow.Stamped{}
	var over []string
	for n, v := range st.Scan(name(record, incarnation, document, "")) {
		if v.Err != nil {
			return nil, v.Err
		}
		s := new(flow.Stamped)
		if err := get(v.Bytes, s); err != nil {
			return nil, err
		}
		if s.Until < version {
			over = append(over, n)
			continue
		}
		records[n] = s
	}
	return records, deleteAll(st, over)
}

// forget deletes all that the state holds of an incarnation.
func forget(st flow.State, incarnation string) error {
	names := []string{name(applied, incarnation)}
	for _, kind := range []string{record, expired, filtered} {
		for n, v := range st.Scan(name(kind, incarnation, "")) {
			if v.Err != nil {
				return v.Err
			}
			names = append(names, n)
		}
	}
	return deleteAll(st, names)
}

func deleteAll(st flow.State, names []string) error {
	for _, n := range names {
		if err := st.Delete(n); err != nil {
			return err
		}
	}
	return nil
}

func put(st flow.State, at string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("state: %w", err))
	}
	return st.Set(at, append([]byte{format}, b...))
}

// get decodes a value. One that cannot be read means that the store is damaged or newer
// than this program.
func get(value []byte, into any) error {
	if len(value) == 0 || value[0] != format {
		return pipeline.Broken(errors.New("state: a value is not in a format that this version knows"))
	}
	if err := json.Unmarshal(value[1:], into); err != nil {
		return pipeline.Broken(fmt.Errorf("state: %w", err))
	}
	return nil
}
