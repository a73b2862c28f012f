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

// Snapshot says that version N of a document now stands, and Previous stood before.
type Snapshot struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	Document    string `json:"document"`
	// Lineage is the store in which the version was made; see ChangeID.
	Lineage string `json:"lineage,omitempty"`
	// N is the version's number; Previous is N-1, or 0 for a baseline, which is compared with
	// nothing: the first version, and later ones whose text stands for no change of the page.
	N        uint64    `json:"version"`
	Previous uint64    `json:"previous"`
	Check    uint64    `json:"check"`
	Time     time.Time `json:"time"` // of the check
	// Stamp is the last stamp of the page before this version.
	Stamp    uint64 `json:"stamp"`
	Language string `json:"language,omitempty"`
	Title    string `json:"title,omitempty"`
	TextHash string `json:"text_hash"`
	// Old and New are the Content of both texts, OldTokens and NewTokens their tokens as
	// text.PackTokens packs them; without tokens the receiver finds them itself. All four travel
	// packed together as the body of the message.
	Old       string `json:"-"`
	New       string `json:"-"`
	OldTokens []byte `json:"-"`
	NewTokens []byte `json:"-"`
}

const headerSnapshot = "vokter_snapshot"

// Message returns s as a message on TopicSnapshots.
func (s Snapshot) Message() Message {
	h, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("pipeline: snapshot: %v", err)) // every field is encodable
	}
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

// pack compresses both texts and their tokens together: texts that resemble each other take
// hardly more than one of them.
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

// PackBody compresses the body of a page to be kept, as PackText does a text; UnpackText is
// the inverse. ok is false where it is too large: more than MaxStoredBody bytes packed, or
// more than twice MaxText unpacked.
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

// Decision is what index decided about a command that somebody may wait for, in whichever
// process: TypeSubscribe, TypeCancel or TypeResume.
type Decision struct {
	// Command is the ID of the command.
	Command string `json:"command"`
	// Code is 0 where the command was carried out, otherwise why it was refused, as in
	// Health.Code; Reason says it in words for the user.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Message returns d as a message on TopicDecisions about page, decided at the time at.
func (d Decision) Message(page string, at time.Time) Message {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("pipeline: decision: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("decision", d.Command), Topic: TopicDecisions, Key: page, Type: TypeDecision, Subject: page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// DecisionFrom is the inverse of Decision.Message.
func DecisionFrom(m Message) (Decision, error) {
	var d Decision
	if err := json.Unmarshal(m.Body, &d); err != nil {
		return d, failure.Permanent(fmt.Errorf("decision %s: %w", m.ID, err))
	}
	return d, nil
}

// maxUnpacked is the largest size of anything packed, once it is unpacked: two texts with their
// tokens, which take no more bytes than their text.
const maxUnpacked = 4*pipeline.MaxText + 64

// UnpackedSize returns how many bytes a packed text, body or snapshot has unpacked; 0 where its
// frame does not say.
func UnpackedSize(packed []byte) int64 {
	var h zstd.Header
	if h.Decode(packed) != nil || !h.HasFCS {
		return 0
	}
	return int64(min(h.FrameContentSize, maxUnpacked))
}
