package admin

import (
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Names of the topics of the transport itself, after the prefix.
const (
	// TopicLanes holds no messages: the process to which the consumer group assigns one of its
	// partitions owns that lane.
	TopicLanes = "lanes"
	// TopicState holds the state of all groups, by lane.
	TopicState = "state"
)

// Settings of topics.
const (
	cleanupPolicy   = "cleanup.policy"
	policyCompact   = "compact"
	policyDelete    = "delete"
	maxMessageBytes = "max.message.bytes"
	retentionMs     = "retention.ms"
	minInsync       = "min.insync.replicas"
)

const day = 24 * time.Hour

// How long messages are kept: longer than their consumers are ever away, or as long as
// people look back.
const (
	keepDefault   = 7 * day
	keepEphemeral = time.Hour
	keepLong      = 90 * day
)

// Spec is a topic as Ensure makes it.
type Spec struct {
	// Name has the prefix.
	Name string
	// Settings are given to a topic that is made, beside min.insync.replicas.
	Settings map[string]string
	// Compacted asks for the last record of each key. Others lose records by compaction.
	Compacted bool
	// Empty marks a topic that nothing is written to.
	Empty bool
	// Ephemeral marks a topic whose records may be lost.
	Ephemeral bool
}

// Specs returns the topics that a transport of c with topics needs: state and lanes first,
// then the others by name. Names in topics are without the prefix.
//
// The records of subscriptions and notifications have the page and the receiver as their
// keys, so that compaction would lose all but the last of each. Their consumers keep what
// they need as state: both are logs like the others, and subscriptions is kept for long
// since people look things up in it.
func (c Config) Specs(topics map[string]flow.Topic) []Spec {
	all := []Spec{
		{Name: c.Prefix + TopicState, Compacted: true, Settings: map[string]string{
			cleanupPolicy:         policyCompact,
			maxMessageBytes:       strconv.Itoa(client.MaxMessage),
			"segment.ms":          millis(day),
			"delete.retention.ms": millis(7 * day),
		}},
		{Name: c.Prefix + TopicLanes, Empty: true, Settings: map[string]string{cleanupPolicy: policyDelete}},
	}
	names := make([]string, 0, len(topics))
	for name := range topics {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		keep := keepDefault
		switch {
		case topics[name].Ephemeral:
			keep = keepEphemeral
		case name == flow.TopicDead, name == flow.TopicSubscriptions:
			keep = keepLong
		}
		all = append(all, Spec{Name: c.Prefix + name, Ephemeral: topics[name].Ephemeral, Settings: map[string]string{
			cleanupPolicy:   policyDelete,
			maxMessageBytes: strconv.Itoa(client.MaxMessage),
			retentionMs:     millis(keep),
		}})
	}
	return all
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
