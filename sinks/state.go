package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Names in the state of a receiver. Every value begins with the byte stateFormat.
const (
	nameQueue     = "queue" // the Queue, as JSON
	namePending   = "p/"    // + sequence number: a pendingRecord, as JSON
	nameKnown     = "d/"    // + notification ID: it is pending or was delivered
	nameDelivered = "t/"    // + time in nanoseconds + "/" + ID: when it was delivered
)

const stateFormat = 1

// pendingRecord is a notification that waits.
type pendingRecord struct {
	Addressed pipeline.Addressed `json:"addressed"`
	Trace     string             `json:"trace,omitempty"`
}

// state reads and writes the state of one receiver.
type state struct{ pipeline.State }

func (s state) queue() (Queue, error) {
	var q Queue
	_, err := s.read(nameQueue, &q)
	return q, err
}

func (s state) known(id string) (bool, error) {
	_, ok, err := s.Get(nameKnown + id)
	return ok, err
}

func (s state) add(seq uint64, p pendingRecord) error {
	if err := s.write(pendingName(seq), p); err != nil {
		return err
	}
	return s.Set(nameKnown+p.Addressed.Notification.ID, []byte{stateFormat})
}

func (s state) pending(seq uint64) (pendingRecord, error) {
	var p pendingRecord
	ok, err := s.read(pendingName(seq), &p)
	if err == nil && !ok {
		err = pipeline.Permanent(fmt.Errorf("delivery: pending notification %d is missing", seq))
	}
	return p, err
}

// done remembers id as delivered.
func (s state) done(id string, at time.Time) error {
	return s.Set(deliveredName(at)+id, []byte{stateFormat})
}

// prune forgets some of what was delivered before before, the oldest first, and reports
// whether anything is still remembered.
func (s state) prune(before time.Time) (left bool, err error) {
	var old []string
	end := deliveredName(before)
	for name, v := range s.Scan(nameDelivered) {
		if v.Err != nil {
			return true, v.Err
		}
		if name >= end || len(old) == pruneBatch {
			left = true
			break
		}
		old = append(old, name)
	}
	for _, name := range old {
		id := name[len(end):]
		if err := errors.Join(s.Delete(name), s.Delete(nameKnown+id)); err != nil {
			return true, err
		}
	}
	return left, nil
}

// pruneBatch bounds the IDs that one transaction forgets.
const pruneBatch = 10_000

func (s state) read(name string, v any) (bool, error) {
	b, ok, err := s.Get(name)
	if err != nil || !ok {
		return false, err
	}
	if len(b) == 0 || b[0] != stateFormat {
		return false, pipeline.Permanent(fmt.Errorf("delivery: state %q has a format that this version does not know", name))
	}
	if err := json.Unmarshal(b[1:], v); err != nil {
		return false, pipeline.Permanent(fmt.Errorf("delivery: state %q: %w", name, err))
	}
	return true, nil
}

func (s state) write(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("delivery: state %q: %w", name, err))
	}
	return s.Set(name, append([]byte{stateFormat}, b...))
}

func pendingName(seq uint64) string { return fmt.Sprintf("%s%020d", namePending, seq) }

// deliveredName returns the beginning of the names of what was delivered at at.
func deliveredName(at time.Time) string {
	return fmt.Sprintf("%s%020d/", nameDelivered, max(at.UnixNano(), 0))
}
