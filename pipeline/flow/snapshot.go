package flow

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

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
	// Restless are the places of the document that change at nearly every check, packed by restless.Set.Pack.
	// Whole says that nothing else of it changes.
	Restless []byte `json:"restless,omitempty"`
	Whole    bool   `json:"whole,omitempty"`
	// Words are the edits in places whose words change at nearly every check: the bytes [0, 1) of Old became the bytes
	// [2, 3) of New.
	Words [][4]int `json:"words,omitempty"`
	// Muting names the places that are restless from the next check on, and MutingWords those whose words are.
	Muting      pipeline.Muting `json:"muting,omitzero"`
	MutingWords pipeline.Muting `json:"muting_words,omitzero"`
	// Elapsed is the time since the check that found the text before it.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Old and New are the Content of both texts. OldTokens and NewTokens are their tokens, packed by
	// text.PackTokens; if they are missing, diff tokenises the texts. All four are the body of the
	// message.
	Old       string `json:"-"`
	New       string `json:"-"`
	OldTokens []byte `json:"-"`
	NewTokens []byte `json:"-"`
	// OldKeys and NewKeys are the keys of the items of both texts, with which these are packed.
	OldKeys []pipeline.Key `json:"-"`
	NewKeys []pipeline.Key `json:"-"`
	// OldPacked and NewPacked are the texts as PackText packs them. Message packs a text that is not packed,
	// so Old may be missing where OldPacked is set. SnapshotFrom does not set them.
	OldPacked []byte `json:"-"`
	NewPacked []byte `json:"-"`
	// Analysis is what the process that made the snapshot knows of New, a *text.Doc. It is nil in any
	// other process.
	Analysis Analysis `json:"-"`
}

// Analysis is a text with its words.
type Analysis interface {
	// Bytes is how much memory it takes beside the text.
	Bytes() int
}

const headerSnapshot = "vokter_snapshot"

// encodeHeader returns the name and value of the header of s.
func (s Snapshot) encodeHeader() (name, value string) { return headerSnapshot, string(encode(s)) }

// extraMemory returns how much memory s takes beside the body of its message.
func (s Snapshot) extraMemory() int {
	if s.Analysis == nil {
		return len(s.New)
	}
	return len(s.New) + s.Analysis.Bytes()
}

// Message returns s as a message on TopicSnapshots. Its header is encoded only when it leaves the
// process.
func (s Snapshot) Message() Message {
	s.Time = s.Time.Round(0).UTC()
	if s.OldPacked == nil {
		s.OldPacked = PackText(s.Old, s.OldKeys...)
	}
	if s.NewPacked == nil {
		s.NewPacked = PackText(s.New, s.NewKeys...)
	}
	body := s.joinBody()
	// What body has is not kept twice. NewPacked says to which text New belongs.
	parts, err := splitBody(body)
	if err != nil {
		panic("flow: " + err.Error()) // cannot happen: joinBody made it
	}
	s.Old, s.OldPacked, s.NewPacked, s.OldTokens, s.NewTokens = "", nil, parts[1], nil, nil
	return Message{
		ID:    DeriveID("snapshot", s.Document, s.Incarnation, strconv.FormatUint(s.N, 10)),
		Topic: TopicSnapshots, Key: s.Page, Type: TypeSnapshot, Subject: s.Page, Time: s.Time,
		Body: body, decoded: s,
	}
}

// SnapshotFrom is the inverse of Snapshot.Message. Its error is permanent; that of an old text which cannot be
// unpacked is Broken, since that text is stored as it is.
func SnapshotFrom(m Message) (Snapshot, error) {
	header, ok := m.Header[headerSnapshot]
	s, made := m.decoded.(Snapshot)
	if !made || ok {
		s = Snapshot{}
		if err := json.Unmarshal([]byte(header), &s); err != nil {
			return s, failure.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
		}
	}
	if err := s.unpack(m.Body); err != nil {
		return s, fmt.Errorf("snapshot %s: %w", m.ID, err)
	}
	return s, nil
}

// joinBody returns the body of the message: the texts, each packed as it is stored, and their tokens.
// Packing both texts together would take less room, but much longer.
func (s Snapshot) joinBody() []byte {
	b := make([]byte, 0, 3*binary.MaxVarintLen64+len(s.OldPacked)+len(s.NewPacked)+len(s.OldTokens)+len(s.NewTokens))
	b = binary.AppendUvarint(b, uint64(len(s.OldPacked)))
	b = binary.AppendUvarint(b, uint64(len(s.NewPacked)))
	b = binary.AppendUvarint(b, uint64(len(s.OldTokens)))
	b = append(append(b, s.OldPacked...), s.NewPacked...)
	return append(append(b, s.OldTokens...), s.NewTokens...)
}

// splitBody returns the parts of a body that joinBody made.
func splitBody(body []byte) (parts [4][]byte, err error) {
	var lengths [3]uint64
	for i := range lengths {
		n, k := binary.Uvarint(body)
		if k <= 0 {
			return parts, errTextLength
		}
		lengths[i], body = n, body[k:]
	}
	for i, n := range lengths {
		if n > uint64(len(body)) {
			return parts, errTextLength
		}
		parts[i], body = body[:n:n], body[n:]
	}
	parts[3] = body
	return parts, nil
}

// unpack reads body, the body of the message. What s holds of New stays if body has the same text.
func (s *Snapshot) unpack(body []byte) error {
	parts, err := splitBody(body)
	if err != nil {
		return failure.Permanent(err)
	}
	if s.New == "" || !bytes.Equal(s.NewPacked, parts[1]) {
		s.Analysis = nil
		if s.New, err = UnpackText(parts[1]); err != nil {
			return failure.Permanent(err)
		}
	}
	if s.Old, err = UnpackText(parts[0]); err != nil {
		return failure.Broken(fmt.Errorf("the text before it: %w", err))
	}
	s.OldKeys, s.NewKeys = UnpackKeys(parts[0]), UnpackKeys(parts[1])
	s.OldTokens, s.NewTokens = parts[2], parts[3]
	s.OldPacked, s.NewPacked = nil, nil
	return nil
}

var errTextLength = errors.New("unpacking two texts: a length is wrong")

// SnapshotSize returns how many bytes the texts of a snapshot and their tokens take, of which body is
// the body of the message. It is 0 if body is damaged.
func SnapshotSize(body []byte) int64 {
	parts, err := splitBody(body)
	if err != nil {
		return 0
	}
	return UnpackedSize(parts[0]) + UnpackedSize(parts[1]) + int64(len(parts[2])+len(parts[3]))
}
