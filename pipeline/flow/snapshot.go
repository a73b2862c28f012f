package flow

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline"
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
		return s, pipeline.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
	}
	if err := s.unpack(m.Body); err != nil {
		return s, pipeline.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
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
