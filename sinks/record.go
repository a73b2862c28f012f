package sinks

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
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
	recordDigested  = "digested"  // became a part of a digest; Known never says that
)

// Record is what delivery remembers of a notification.
type Record struct {
	// State is one of the Record constants.
	State string
	// Attempts is how many attempts were made; Reason says why the last one failed, or what
	// a pending notification waits for.
	Attempts int
	Reason   string
	// Time is when it was delivered, given up or dropped. Of a pending one it is when the
	// next attempt may begin; zero means at once. Of a collected one it is when its digest ends.
	Time time.Time
	// In is the ID of the digest that tells it; while it is collected, the subscription.
	In string
}

// recordStates are the states by their byte in a Record.
var recordStates = []string{RecordPending, RecordDelivered, RecordDead, RecordDropped, RecordCollected, recordDigested}

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

// tail is what a record ends with: nothing has both a digest and a reason.
func (r Record) tail() string { return r.Reason + r.In }

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
	if r.State == RecordCollected || r.State == recordDigested {
		r.In = string(b[n+m:])
	} else {
		r.Reason = string(b[n+m:])
	}
	if at != 0 {
		r.Time = time.Unix(0, at).UTC()
	}
	return r, nil
}

// knownRounds is how often a state that changes meanwhile is read again.
const knownRounds = 20

// Known returns what the state of a receiver, of group pipeline.GroupDelivery, says of the
// notification id; ok is false where it is not known, or not any more. Of one that was told in
// a digest it is what became of that. The state may change meanwhile. It fails with a failure.Broken error where it cannot be read.
func Known(st flow.State, id string) (r Record, ok bool, err error) {
	s := state{st}
	for range knownRounds {
		q, err := s.queue()
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
			continue // it was told, or dropped, meanwhile
		}
		digest := ""
		if r.State == recordDigested {
			digest = r.In
			if r, ok, err = s.record(digest); err != nil || !ok {
				return Record{}, false, err
			}
			r.In = digest
		}
		id := cmp.Or(digest, id) // what is queued
		if r.State != RecordPending {
			return r, true, nil
		}
		head, missing := s.pending(q.Head)
		// What was read belongs together only if the queue is still the same.
		switch now, err := s.queue(); {
		case err != nil:
			return r, true, err
		case now != q:
			continue
		}
		if missing != nil {
			return r, true, missing
		}
		return waiting(r, q, head.Addressed.Notification.ID == id), true, nil
	}
	return r, true, nil // pending, in a queue that does not stand still
}

// waiting returns r, of a pending notification, with what q says of it; first says that
// it is the oldest.
func waiting(r Record, q Queue, first bool) Record {
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

// Load returns the queue of a receiver from its state, of group pipeline.GroupDelivery. It
// fails with a failure.Broken error where the state cannot be read.
func Load(st flow.State) (Queue, error) { return state{st}.queue() }

// Waiting counts the notifications that wait for a receiver, whose state of group
// pipeline.GroupDelivery st is: all, or those about page, a canonical URL. What is collected for
// a digest does not count. The state may change meanwhile.
func Waiting(st flow.State, page string) (int, error) {
	s := state{st}
	for {
		q, err := s.queue()
		if err != nil || page == "" {
			return q.Pending(), err
		}
		n, missing := s.waiting(q, page)
		switch now, err := s.queue(); {
		case err != nil:
			return 0, err
		case now.Head == q.Head: // what was read was not taken out meanwhile
			return n, missing
		}
	}
}
