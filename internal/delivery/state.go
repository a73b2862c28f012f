package delivery

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Names in the state of a receiver. Every value begins with the byte stateFormat.
const (
	nameQueue       = "queue" // the Queue
	namePending     = "p/"    // + sequence number: a pendingRecord
	nameRecord      = "d/"    // + notification ID: its Record
	nameEndedAt     = "t/"    // + time in nanoseconds + "/" + ID: when it was delivered, given up or dropped
	nameWithdrawn   = "x/"    // + incarnation of a cancelled subscription
	nameWithdrawnAt = "m/"    // + time in nanoseconds + "/" + incarnation: a marker
	nameWindow      = "gw/"   // + incarnation of a subscription: its window
	nameWindowItem  = "gi/"   // + incarnation + "/" + number in the window: a pendingRecord
	nameNote        = "n/"    // + document: the note of a sink
	nameWindowEnd   = "ge/"   // + time in nanoseconds + "/" + incarnation: when its window ends
)

const stateFormat = 3

// pruneBatch limits the IDs, and the markers, that one transaction removes.
const pruneBatch = 10_000

// pendingRecord is a pending notification, or one in a digest.
type pendingRecord struct {
	Addressed flow.Addressed `json:"addressed"`
	Trace     string         `json:"trace,omitempty"`
	// Replayed says that it was replayed: other sinks deliver it again, too.
	Replayed bool `json:"replayed,omitempty"`

	size int // bytes stored
}

// withdrawnMarker says when a subscription was cancelled.
type withdrawnMarker struct {
	// Next is Queue.Next at that time. Of the pending notifications, only those below it can
	// belong to the subscription.
	Next uint64 `json:"next"`
}

// state reads and writes the state of one receiver.
type state struct{ flow.State }

func (s state) loadQueue() (Queue, error) {
	var q Queue
	_, err := s.read(nameQueue, &q)
	return q, err
}

// record returns the Record of the notification id.
func (s state) record(id string) (Record, bool, error) {
	b, ok, err := s.Get(nameRecord + id)
	if err != nil || !ok {
		return Record{}, false, err
	}
	r, err := decodeRecord(b)
	if err != nil {
		return r, true, damaged(nameRecord+id, err)
	}
	return r, true, nil
}

func (s state) addPending(seq uint64, p pendingRecord) error {
	return errors.Join(
		s.write(pendingName(seq), p),
		s.Set(nameRecord+p.Addressed.Notification.ID, Record{State: RecordPending}.encode()),
	)
}

func (s state) pending(seq uint64) (pendingRecord, error) {
	name := pendingName(seq)
	b, ok, err := s.Get(name)
	switch {
	case err != nil:
		return pendingRecord{}, err
	case !ok:
		return pendingRecord{}, damaged(name, errors.New("it is missing"))
	}
	p := pendingRecord{size: len(b)}
	err = decode(name, b, &p)
	return p, err
}

// countPending counts the pending notifications of q about page, a canonical URL.
func (s state) countPending(q Queue, page string) (n int, err error) {
	for seq := q.Head; seq < q.Next; seq++ {
		p, err := s.pending(seq)
		if err != nil {
			return 0, err
		}
		if pageOf(p.Addressed.Notification) == page {
			n++
		}
	}
	return n, nil
}

// setEnded records what became of the notification id.
func (s state) setEnded(id string, r Record) error {
	return errors.Join(
		s.Set(nameRecord+id, r.encode()),
		s.Set(timedName(nameEndedAt, r.Time)+id, []byte{stateFormat}),
	)
}

// deleteEnded undoes end.
func (s state) deleteEnded(id string, r Record) error {
	return errors.Join(s.Delete(nameRecord+id), s.Delete(timedName(nameEndedAt, r.Time)+id))
}

// markWithdrawn records that a subscription was cancelled.
func (s state) markWithdrawn(subscription string, m withdrawnMarker, at time.Time) error {
	return errors.Join(
		s.Set(nameWithdrawn+subscription, []byte{stateFormat}),
		s.write(timedName(nameWithdrawnAt, at)+subscription, m),
	)
}

func (s state) isWithdrawn(subscription string) (bool, error) {
	_, ok, err := s.Get(nameWithdrawn + subscription)
	return ok, err
}

// prune removes the records of notifications that ended before before, and the markers from
// before markers that no notification from head on needs, the oldest first.
func (s state) prune(before, markers time.Time, head uint64) (p pruned, err error) {
	var old []string
	end := timedName(nameEndedAt, before)
	for name, v := range s.Scan(nameEndedAt) {
		if v.Err != nil {
			return p, v.Err
		}
		if name >= end {
			p.OthersRemain = true
			break
		}
		if len(old) >= 2*pruneBatch {
			p.OthersRemain, p.MoreOld = true, true
			break
		}
		old = append(old, name, nameRecord+name[len(end):])
	}
	end = timedName(nameWithdrawnAt, markers)
	for name, v := range s.Scan(nameWithdrawnAt) {
		if v.Err != nil {
			return p, v.Err
		}
		var m withdrawnMarker
		if err := decode(name, v.Bytes, &m); err != nil {
			return p, err
		}
		if name >= end || m.Next > head {
			p.OthersRemain = true // so are those behind it, which are younger
			break
		}
		if p.Markers == pruneBatch {
			p.OthersRemain, p.MoreOld = true, true
			break
		}
		old = append(old, name, nameWithdrawn+name[len(end):])
		p.Markers++
	}
	for _, name := range old {
		if err := s.Delete(name); err != nil {
			return p, err
		}
	}
	return p, nil
}

// window returns the window of a subscription, the zero window if there is none.
func (s state) window(subscription string) (win window, err error) {
	_, err = s.read(nameWindow+subscription, &win)
	return win, err
}

// windows returns all windows by subscription.
func (s state) windows() (map[string]window, error) {
	all := make(map[string]window)
	for name, v := range s.Scan(nameWindow) {
		if v.Err != nil {
			return nil, v.Err
		}
		var win window
		if err := decode(name, v.Bytes, &win); err != nil {
			return nil, err
		}
		all[name[len(nameWindow):]] = win
	}
	return all, nil
}

// setWindow replaces the window of a subscription. One without items is deleted.
func (s state) setWindow(subscription string, before, after window) error {
	var errs []error
	moved := before.Items == 0 || after.Items == 0 || !before.Due.Equal(after.Due)
	if moved && before.Items > 0 {
		errs = append(errs, s.Delete(timedName(nameWindowEnd, before.Due)+subscription))
	}
	if moved && after.Items > 0 {
		errs = append(errs, s.Set(timedName(nameWindowEnd, after.Due)+subscription, []byte{stateFormat}))
	}
	if after.Items == 0 {
		return errors.Join(append(errs, s.Delete(nameWindow+subscription))...)
	}
	return errors.Join(append(errs, s.write(nameWindow+subscription, after))...)
}

// windowEnd says when the window of a subscription ends.
type windowEnd struct {
	due          time.Time
	subscription string
}

// windowEnds yields the ends of all windows in order. An error is the last element.
func (s state) windowEnds() iter.Seq2[windowEnd, error] {
	return func(yield func(windowEnd, error) bool) {
		for name, v := range s.Scan(nameWindowEnd) {
			if v.Err != nil {
				yield(windowEnd{}, v.Err)
				return
			}
			at, subscription, _ := strings.Cut(name[len(nameWindowEnd):], "/")
			var nanos int64
			if _, err := fmt.Sscanf(at, "%d", &nanos); err != nil {
				yield(windowEnd{}, damaged(name, err))
				return
			}
			if !yield(windowEnd{time.Unix(0, nanos).UTC(), subscription}, nil) {
				return
			}
		}
	}
}

// firstWindowEnd returns when the first window ends. There must be one.
func (s state) firstWindowEnd() (time.Time, error) {
	for end, err := range s.windowEnds() {
		return end.due, err
	}
	return time.Time{}, damaged(nameWindowEnd, errors.New("none is there, but a digest is open"))
}

// dueWindows returns the subscriptions whose windows end by by, or all if that is zero, in
// order, and at most limit of them.
func (s state) dueWindows(by time.Time, limit int) (subscriptions []string, err error) {
	for end, err := range s.windowEnds() {
		if err != nil || !by.IsZero() && end.due.After(by) || len(subscriptions) == limit {
			return subscriptions, err
		}
		subscriptions = append(subscriptions, end.subscription)
	}
	return subscriptions, nil
}

// note is what a sink noted about a document.
type note struct {
	Text string    `json:"text"`
	Time time.Time `json:"time"`
}

// noteOf returns the note of document, "" if there is none or it is older than since.
func (s state) noteOf(document string, since time.Time) (string, error) {
	var n note
	if ok, err := s.read(nameNote+document, &n); err != nil || !ok || n.Time.Before(since) {
		return "", err
	}
	return n.Text, nil
}

// setNote stores the note of document. An empty text deletes it.
func (s state) setNote(document, text string, at time.Time) error {
	if text == "" {
		return s.Delete(nameNote + document)
	}
	return s.write(nameNote+document, note{text, at})
}

// pruneNotes removes at most pruneBatch notes from before before. It reports whether there are
// others.
func (s state) pruneNotes(before time.Time) (left bool, err error) {
	var old []string
	for name, v := range s.Scan(nameNote) {
		if v.Err != nil {
			return left, v.Err
		}
		var n note
		if err := decode(name, v.Bytes, &n); err != nil {
			return left, err
		}
		if !n.Time.Before(before) || len(old) == pruneBatch {
			left = true
			continue
		}
		old = append(old, name)
	}
	for _, name := range old {
		err = errors.Join(err, s.Delete(name))
	}
	return left, err
}

func (s state) read(name string, v any) (bool, error) {
	b, ok, err := s.Get(name)
	if err != nil || !ok {
		return false, err
	}
	return true, decode(name, b, v)
}

func (s state) write(name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return s.Set(name, b)
}

func encode(v any) ([]byte, error) {
	b, err := stored.Encode(stateFormat, v)
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	return b, nil
}

func decode(name string, b []byte, v any) error {
	if err := stored.Decode(b, stateFormat, v); err != nil {
		return damaged(name, err)
	}
	return nil
}

// damaged is the error for a value that cannot be read. To go on without it would lose
// notifications.
func damaged(name string, err error) error {
	return failure.Broken(fmt.Errorf("delivery: state %q cannot be read: %w", name, err))
}

func pendingName(seq uint64) string { return fmt.Sprintf("%s%020d", namePending, seq) }

func windowItemName(subscription string, i int) string {
	return fmt.Sprintf("%s%s/%08d", nameWindowItem, subscription, i)
}

// timedName returns prefix and a time, in a form whose order is that of the times.
func timedName(prefix string, at time.Time) string {
	return fmt.Sprintf("%s%020d/", prefix, max(at.UnixNano(), 0))
}
