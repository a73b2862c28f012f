package delivery

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// What became of a notification, in a Record.
const (
	RecordPending   = "pending"
	RecordDelivered = "delivered"
	RecordDead      = "dead"      // given up
	RecordDropped   = "dropped"   // its subscription was cancelled first
	RecordCollected = "collected" // waits in a digest
	recordDigested  = "digested"  // became a part of a digest; Known never returns it
	RecordPassed    = "passed"    // passed on to other sinks
)

// Record says what became of a notification.
type Record struct {
	// State is one of the Record constants.
	State string
	// Attempts is how many attempts were made. Reason says why the last one failed, or what
	// a pending notification waits for.
	Attempts int
	Reason   string
	// Time is when it was delivered, given up or dropped. Of a pending one it is when the
	// next attempt may begin; zero means at once. Of a collected one it is when its digest ends.
	Time time.Time
	// In is the ID of the digest that has it; while it is collected, the subscription.
	In string
	// passedTo are the sinks that it was passed on to and the IDs that it has there, all separated by
	// blanks, which names of sinks do not have.
	passedTo string
}

// To returns the sinks that the notification was passed on to.
func (r Record) To() []Passed {
	var all []Passed
	for f := strings.Fields(r.passedTo); len(f) >= 2; f = f[2:] {
		all = append(all, Passed{f[0], f[1]})
	}
	return all
}

// Passed is a notification that was passed on to another sink.
type Passed struct{ Sink, ID string }

// recordStates are the states by their byte in a stored Record.
var recordStates = []string{RecordPending, RecordDelivered, RecordDead, RecordDropped, RecordCollected, recordDigested, RecordPassed}

func (r Record) encode() []byte {
	b := []byte{stateFormat, byte(slices.Index(recordStates, r.State))}
	b = binary.AppendUvarint(b, uint64(r.Attempts))
	var at int64
	if !r.Time.IsZero() {
		at = r.Time.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	return append(b, r.tail()...)
}

// tail is the end of a stored Record, which has a reason, a digest or other sinks.
func (r Record) tail() string { return r.Reason + r.In + r.passedTo }

func decodeRecord(b []byte) (Record, error) {
	if len(b) < 2 || b[0] != stateFormat || int(b[1]) >= len(recordStates) {
		return Record{}, fmt.Errorf("its format is not known")
	}
	r := Record{State: recordStates[b[1]]}
	b = b[2:]
	attempts, n := binary.Uvarint(b)
	if n <= 0 {
		return Record{}, fmt.Errorf("it is damaged")
	}
	at, m := binary.Varint(b[n:])
	if m <= 0 {
		return Record{}, fmt.Errorf("it is damaged")
	}
	r.Attempts = int(attempts)
	switch tail := string(b[n+m:]); r.State {
	case RecordCollected, recordDigested:
		r.In = tail
	case RecordPassed:
		r.passedTo = tail
	default:
		r.Reason = tail
	}
	if at != 0 {
		r.Time = time.Unix(0, at).UTC()
	}
	return r, nil
}

// maxKnownReads is how often Known reads a state that changes meanwhile.
const maxKnownReads = 20

// Known returns the Record of the notification id from the state of its receiver, of group
// flow.GroupDelivery. ok is false if there is none, or it was removed. For a notification in a
// digest it says what became of the digest. The state may change meanwhile. Known fails with a
// failure.Broken error if the state cannot be read.
func Known(st flow.State, id string) (r Record, ok bool, err error) {
	s := state{st}
	for range maxKnownReads {
		q, err := s.loadQueue()
		if err != nil {
			return Record{}, false, err
		}
		if r, ok, err = s.record(id); err != nil || !ok {
			return Record{}, false, err
		}
		if r.State == RecordCollected {
			win, err := s.window(r.In)
			if r.Time = win.Due; err != nil || win.Items > 0 {
				return r, true, err
			}
			continue // its digest ended meanwhile
		}
		digest := ""
		if r.State == recordDigested {
			digest = r.In
			if r, ok, err = s.record(digest); err != nil || !ok {
				return Record{}, false, err
			}
			r.In = digest
		}
		id := cmp.Or(digest, id) // the one in the queue
		if r.State != RecordPending {
			return r, true, nil
		}
		head, missing := s.pending(q.Head)
		// What was read belongs together only if the queue is still the same.
		switch now, err := s.loadQueue(); {
		case err != nil:
			return r, true, err
		case now != q:
			continue
		}
		if missing != nil {
			return r, true, missing
		}
		return completePending(r, q, head.Addressed.Notification.ID == id), true, nil
	}
	return r, true, nil // pending, in a queue that keeps changing
}

// completePending completes r, the Record of a pending notification, from q. first says that the
// notification is the oldest.
func completePending(r Record, q Queue, first bool) Record {
	r.Time = q.Due
	if !first {
		r.Reason = "waits for an earlier one"
		if q.Reason != "" {
			r.Reason += ": " + q.Reason
		}
		return r
	}
	r.Attempts = q.Tries
	if q.InFlight {
		r.Attempts++
	}
	if q.Tries > 0 {
		r.Reason = q.Reason
	}
	return r
}

// Load returns the Queue of a receiver from its state, of group flow.GroupDelivery. It fails
// with a failure.Broken error if the state cannot be read.
func Load(st flow.State) (Queue, error) { return state{st}.loadQueue() }

// Waiting counts the pending notifications in the state of a receiver, of group
// flow.GroupDelivery: all of them, or those about page, a canonical URL. Those in digests do not
// count. The state may change meanwhile.
func Waiting(st flow.State, page string) (int, error) {
	s := state{st}
	for {
		q, err := s.loadQueue()
		if err != nil || page == "" {
			return q.Pending(), err
		}
		n, missing := s.countPending(q, page)
		switch now, err := s.loadQueue(); {
		case err != nil:
			return 0, err
		case now.Head == q.Head: // no notification was removed meanwhile
			return n, missing
		}
	}
}
