package flow

import (
	"encoding/json"
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
	// Old and New are the texts' Content. They travel packed together as the message's body.
	Old string `json:"-"`
	New string `json:"-"`
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
		Header: map[string]string{headerSnapshot: string(h)}, Body: PackTexts(s.Old, s.New),
	}
}

// SnapshotFrom is the inverse of Snapshot.Message.
func SnapshotFrom(m Message) (Snapshot, error) {
	var s Snapshot
	if err := json.Unmarshal([]byte(m.Header[headerSnapshot]), &s); err != nil {
		return s, pipeline.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
	}
	var err error
	if s.Old, s.New, err = UnpackTexts(m.Body); err != nil {
		return s, pipeline.Permanent(fmt.Errorf("snapshot %s: %w", m.ID, err))
	}
	return s, nil
}
