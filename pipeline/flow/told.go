package flow

import (
	"strconv"
	"time"
)

// Told says that clients are notified of a version of a document: the notifications link to its difference.
type Told struct {
	Page        string    `json:"page"`
	Incarnation string    `json:"incarnation"`
	Document    string    `json:"document"`
	Version     uint64    `json:"version"`
	Time        time.Time `json:"time"` // of the check
}

// Message returns t as a message on TopicDocuments.
func (t Told) Message() Message {
	return Message{
		ID:    DeriveID("told", t.Page, t.Incarnation, t.Document, strconv.FormatUint(t.Version, 10)),
		Topic: TopicDocuments, Key: t.Page, Type: TypeTold, Subject: t.Page, Time: t.Time,
		Header: map[string]string{headerContent: "application/json"}, Body: encode(t),
	}
}

// ToldFrom is the inverse of Told.Message.
func ToldFrom(m Message) (Told, error) { return decode[Told](m, "told") }
