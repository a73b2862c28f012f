package pipeline

import (
	"encoding/json"
	"fmt"
	"time"
)

// DeadLetter is what was given up: the body of TypeDeadLetter.
type DeadLetter struct {
	// Reason says why, without secrets; Group and Topic say where a message that could not
	// be handled was read.
	Reason   string    `json:"reason"`
	Time     time.Time `json:"time"`
	Attempts int       `json:"attempts"`
	// Addressed is the notification that was not delivered, if it is one.
	Addressed *Addressed `json:"addressed,omitempty"`
	Group     string     `json:"group,omitempty"`
	Topic     string     `json:"topic,omitempty"`
	// Message is any other message, with its headers.
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
}

// Message returns d as a message on TopicDead, under key. id is that of what was given up.
func (d DeadLetter) Message(id, key, subject string) Message {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("pipeline: dead letter: %v", err)) // every field is encodable
	}
	return Message{ID: DeriveID("dead", id, d.Group), Topic: TopicDead, Key: key, Type: TypeDeadLetter,
		Subject: subject, Time: d.Time, Header: map[string]string{headerContent: "application/json"}, Body: b}
}

// DeadFilter selects dead letters. Empty fields select all.
type DeadFilter struct {
	Sink   string    `json:"sink,omitempty"`
	Client string    `json:"client,omitempty"`
	URL    string    `json:"url,omitempty"`  // its page
	Since  time.Time `json:"since,omitzero"` // given up then or later
}

// Selects reports whether f selects d. Only notifications are ever selected.
func (f DeadFilter) Selects(d DeadLetter) bool {
	if d.Addressed == nil {
		return false
	}
	n := d.Addressed.Notification
	return (f.Sink == "" || f.Sink == d.Addressed.Receiver.Sink) &&
		(f.Client == "" || f.Client == n.Client) &&
		(f.URL == "" || samePage(f.URL, n.URL)) &&
		!d.Time.Before(f.Since)
}

func samePage(a, b string) bool {
	x, errX := CanonicalURL(a)
	y, errY := CanonicalURL(b)
	return errX == nil && errY == nil && x == y
}

// ReplayCommand asks for the dead letters of one receiver, the message's key, to be delivered
// again: those that Filter selects.
type ReplayCommand struct {
	Filter DeadFilter `json:"filter"`
}
