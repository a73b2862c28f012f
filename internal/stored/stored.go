// Package stored is for values that a stage keeps in its state: it encodes them, keeps them in memory as
// they were stored last, and remembers which of the work that they tell of was begun by this process.
//
// A value is one byte with the format of the stage, and CBOR (RFC 8949). Fields are named by their tags,
// those for cbor or else those for json.
package stored

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/vokter/vokter/pipeline/failure"
)

var encoding = func() cbor.UserBufferEncMode {
	m, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC, Sort: cbor.SortBytewiseLexical}.UserBufferEncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// decoding reads back whatever encoding wrote: a host may put any byte into its ETag.
var decoding = func() cbor.DecMode {
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// Encode returns v as a value of a format. It fails with a permanent error where CBOR cannot hold v, such
// as a channel. Times must be in the years 0 to 9999; see flow.CheckTime.
func Encode(format byte, v any) ([]byte, error) { return Append(make([]byte, 0, 512), format, v) }

// Append appends what Encode returns to b.
func Append(b []byte, format byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(append(b, format))
	if err := encoding.MarshalToBuffer(v, buf); err != nil {
		return nil, failure.Permanent(fmt.Errorf("encoding a value of state: %w", err))
	}
	return buf.Bytes(), nil
}

// Decode is the inverse of Encode. It fails with a broken error where b has another format or is damaged.
func Decode(b []byte, format byte, v any) error {
	if len(b) == 0 || b[0] != format {
		return failure.Broken(errors.New("a value of state has a format that this program does not know"))
	}
	if err := decoding.Unmarshal(b[1:], v); err != nil {
		return failure.Broken(fmt.Errorf("a value of state is damaged: %w", err))
	}
	return nil
}
