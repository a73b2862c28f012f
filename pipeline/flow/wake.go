package flow

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// WakeName is the name of the value in which a group of Topic.Timed keeps the wake of a key. The value
// begins with that wake; see AppendWake.
const WakeName = Hot + "wake"

// wakeSize is how many bytes a wake takes.
const wakeSize = 9

// AppendWake appends the wake that a handler asks for with Tx.WakeAt: 8 bytes with the time in
// nanoseconds since 1970, and one byte that is 1 if the wake also comes at the start. The zero time,
// for no wake, is 0.
func AppendWake(b []byte, at time.Time, atStart bool) []byte {
	var nanos int64
	switch {
	case at.IsZero():
	case at.Year() > 2261:
		nanos = math.MaxInt64 // the latest time that fits
	default:
		nanos = max(at.UnixNano(), 1)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(nanos))
	if atStart {
		return append(b, 1)
	}
	return append(b, 0)
}

// CutWake is the inverse of AppendWake. Rest is what follows the wake.
func CutWake(value []byte) (at time.Time, atStart bool, rest []byte, err error) {
	if len(value) < wakeSize {
		return time.Time{}, false, nil, errors.New("flow: a value of a group of Topic.Timed does not begin with a wake")
	}
	if nanos := int64(binary.BigEndian.Uint64(value)); nanos != 0 {
		at = time.Unix(0, nanos).UTC()
	}
	return at, value[8] == 1, value[wakeSize:], nil
}
