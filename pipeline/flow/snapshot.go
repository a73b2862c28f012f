package flow

import (
	"fmt"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// Snapshot is a new version of a document, with its text and the text before it. It is handed from index to diff within
// a transaction, and has no encoding.
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
	Language string    `json:"language,omitempty"`
	Title    string    `json:"title,omitempty"`
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
	// Old and New are the Content of both texts, and OldKeys and NewKeys the keys of their items. OldPacked is the old
	// text as PackText packs it: Unpack sets Old from it. OldTokens are its tokens, packed by
	// text.PackTokens; where they are missing, diff tokenises the text.
	Old       string         `json:"-"`
	New       string         `json:"-"`
	OldKeys   []pipeline.Key `json:"-"`
	NewKeys   []pipeline.Key `json:"-"`
	OldPacked []byte         `json:"-"`
	OldTokens []byte         `json:"-"`
	// Analysis is New with its words, a *text.Doc, or nil.
	Analysis any `json:"-"`
}

const headerSnapshot = "vokter_snapshot"

// encodeHeader returns a header that names the version, for a dead letter.
func (s Snapshot) encodeHeader() (name, value string) {
	return headerSnapshot, string(encode(SnapshotName{s.Page, s.Incarnation, s.Document, s.N}))
}

// Message returns s as a message on TopicSnapshots.
func (s Snapshot) Message() Message {
	s.Time = s.Time.Round(0).UTC()
	return Message{
		ID:    DeriveID("snapshot", s.Document, s.Incarnation, strconv.FormatUint(s.N, 10)),
		Topic: TopicSnapshots, Key: s.Page, Type: TypeSnapshot, Subject: s.Page, Time: s.Time, decoded: s,
	}
}

// SnapshotFrom is the inverse of Snapshot.Message.
func SnapshotFrom(m Message) (Snapshot, error) {
	s, ok := m.decoded.(Snapshot)
	if !ok {
		return s, failure.Permanent(fmt.Errorf("snapshot %s was not made in this process", m.ID))
	}
	return s, nil
}

// Unpack sets Old from OldPacked where it is missing. Its error is Broken, since that text is stored as it is.
func (s *Snapshot) Unpack() (err error) {
	if s.Old != "" || s.OldPacked == nil {
		return nil
	}
	if s.Old, err = UnpackText(s.OldPacked); err != nil {
		return failure.Broken(fmt.Errorf("the text before version %d of %s: %w", s.N, s.Page, err))
	}
	return nil
}

// Size returns how many bytes the texts of s and their tokens take.
func (s Snapshot) Size() int64 {
	return max(int64(len(s.Old)), UnpackedSize(s.OldPacked)) + int64(len(s.New)+len(s.OldTokens))
}

// SnapshotName names the version of a snapshot. Those of its change that have the same names in JSON are the same.
type SnapshotName struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	Document    string `json:"document"`
	N           uint64 `json:"version"`
}

// compareMessage returns a message on TopicDocuments that has index make the snapshot again, at the time at.
func (n SnapshotName) compareMessage(at time.Time) Message {
	return Message{
		ID:    DeriveID("compare", n.Page, n.Incarnation, n.Document, strconv.FormatUint(n.N, 10), strconv.FormatInt(at.UnixNano(), 10)),
		Topic: TopicDocuments, Key: n.Page, Type: TypeCompare, Subject: n.Page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(n),
	}
}

// SnapshotNameFrom returns the name that m, a message of TypeCompare, carries. Its error is permanent.
func SnapshotNameFrom(m Message) (SnapshotName, error) { return decode[SnapshotName](m, "compare") }
