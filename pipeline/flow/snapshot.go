package flow

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Snapshot is a new version of a document, with its text and the text before it.
type Snapshot struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	Document    string `json:"document"`
	// Lineage is the store that the version was made in; see ChangeID.
	Lineage string `json:"lineage,omitempty"`
	// N is the number of the version. Previous is N-1, or 0 for a baseline, which is compared with
	// nothing: the first version, and a later one whose text differs without a change of the page.
	N        uint64    `json:"version"`
	Previous uint64    `json:"previous"`
	Check    uint64    `json:"check"`
	Time     time.Time `json:"time"` // of the check
	// Stamp is the last stamp of a subscription of the page before this version.
	Stamp    uint64 `json:"stamp"`
	Language string `json:"language,omitempty"`
	Title    string `json:"title,omitempty"`
	// ContentType is the media type of the page.
	ContentType string `json:"content_type,omitempty"`
	TextHash    string `json:"text_hash"`
	// Value says that the document is a pipeline.Value, whose whole text is compared as one token.
	Value bool `json:"value,omitempty"`
	// Old and New are the Content of both texts. OldTokens and NewTokens are their tokens, packed by
	// text.PackTokens; if they are missing, diff tokenises the texts. All four are packed together
	// as the body of the message.
	Old       string `json:"-"`
	New       string `json:"-"`
	OldTokens []byte `json:"-"`
	NewTokens []byte `json:"-"`
}

const headerSnapshot = "vokter_snapshot"

// Message returns s as a message on TopicSnapshots.
func (s Snapshot) Message() Message {
	h := encode(s)
	return Message{
		ID:    DeriveID("snapshot", s.Document, s.Incarnation, fmt.Sprint(s.N)),
		Topic: TopicSnapshots, Key: s.Page, Type: TypeSnapshot, Subject: s.Page, Time: s.Time,
		Header: map[string]string{headerSnapshot: string(h)}, Body: s.pack(),
	}
}

// SnapshotFrom is the inverse of Snapshot.Message.
func SnapshotFrom(m Message) (Snapshot, error) {
	var s Snapshot
	if err := json.Unmarshal([]byte(m.Header[headerSnapshot]), &s); err != nil {
		return s, failure.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
	}
	if err := s.unpack(m.Body); err != nil {
		return s, failure.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
	}
	return s, nil
}

// pack compresses both texts and their tokens together: two similar texts take little more than
// one of them.
func (s Snapshot) pack() []byte {
	buf := make([]byte, 0, 3*binary.MaxVarintLen64+len(s.Old)+len(s.New)+len(s.OldTokens)+len(s.NewTokens))
	buf = binary.AppendUvarint(buf, uint64(len(s.Old)))
	buf = binary.AppendUvarint(buf, uint64(len(s.New)))
	buf = binary.AppendUvarint(buf, uint64(len(s.OldTokens)))
	buf = append(append(buf, s.Old...), s.New...)
	buf = append(append(buf, s.OldTokens...), s.NewTokens...)
	return zstdEncoder.EncodeAll(buf, nil)
}

// unpack is the inverse of pack.
func (s *Snapshot) unpack(packed []byte) error {
	buf, err := zstdDecoder.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("unpacking two texts: %w", err)
	}
	var lengths [3]uint64
	for i := range lengths {
		n, k := binary.Uvarint(buf)
		if k <= 0 {
			return errTexts
		}
		lengths[i], buf = n, buf[k:]
	}
	var parts [3][]byte
	for i, n := range lengths {
		if n > uint64(len(buf)) {
			return errTexts
		}
		parts[i], buf = buf[:n], buf[n:]
	}
	s.Old, s.New, s.OldTokens, s.NewTokens = string(parts[0]), string(parts[1]), parts[2], buf
	return nil
}

var errTexts = errors.New("unpacking two texts: a length is wrong")

// The coders are safe for concurrent use with EncodeAll and DecodeAll.
var (
	zstdEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))
	zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(0))
)

// PackText compresses a text.
func PackText(text string) []byte { return zstdEncoder.EncodeAll([]byte(text), nil) }

// PackBody compresses the body of a page; UnpackText is the inverse. ok is false if it is too large
// to store: more than MaxStoredBody bytes packed, or more than twice MaxText unpacked.
func PackBody(body []byte) (packed []byte, ok bool) {
	if len(body) > 2*pipeline.MaxText {
		return nil, false
	}
	packed = zstdEncoder.EncodeAll(body, nil)
	return packed, len(packed) <= MaxStoredBody
}

// UnpackText is the inverse of PackText.
func UnpackText(packed []byte) (string, error) {
	b, err := zstdDecoder.DecodeAll(packed, nil)
	if err != nil {
		return "", fmt.Errorf("unpacking a text: %w", err)
	}
	return string(b), nil
}

// maxUnpacked is the largest unpacked size of anything: two texts with their tokens, which take no
// more bytes than the text.
const maxUnpacked = 4*pipeline.MaxText + 64

// UnpackedSize returns the unpacked size of a packed text, body or snapshot in bytes, or 0 if its
// zstd frame does not say it.
func UnpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil || !h.HasFCS {
		return 0
	}
	return int64(min(h.FrameContentSize, maxUnpacked))
}
