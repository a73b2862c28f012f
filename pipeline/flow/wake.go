package flow

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// WakeName is the name of the value in which a transport keeps the wake of a key, in a group of its own,
// or a group of Topic.Timed in its state. The value begins with that wake; see AppendWake.
const WakeName = Hot + "wake"

// wakeSize is how many bytes a wake takes.
const wakeSize = 9

// AppendWake appends the wake that a handler asks for with Tx.WakeAt: 8 bytes with the time in
// nanoseconds since 1970, and one byte that is 1 if the wake also comes at the start. The zero time,
// for no wake, is 0.
func AppendWake(b []byte, at time.Time, atStart bool) []byte {
	var nanos int64
	if !at.IsZero() {
		nanos = WakeTime(at).UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(nanos))
	if atStart {
		return append(b, 1)
	}
	return append(b, 0)
}

// WakeTime returns at as AppendWake keeps it: in UTC, and between 1970 and 2262. The zero time stays.
func WakeTime(at time.Time) time.Time {
	switch {
	case at.IsZero():
		return at
	case at.Unix() < 0:
		return time.Unix(0, 1).UTC()
	case at.Year() > 2261:
		return time.Unix(0, math.MaxInt64).UTC() // the latest time that fits
	}
	return time.Unix(0, max(at.UnixNano(), 1)).UTC()
}

// CutWake is the inverse of AppendWake. Rest is what follows the wake.
func CutWake(value []byte) (at time.Time, atStart bool, rest []byte, err error) {
	if len(value) < wakeSize {
		return time.Time{}, false, nil, errors.New("flow: a value does not begin with a wake")
	}
	if nanos := int64(binary.BigEndian.Uint64(value)); nanos != 0 {
		at = time.Unix(0, nanos).UTC()
	}
	return at, value[8] == 1, value[wakeSize:], nil
}
