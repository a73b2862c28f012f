package admin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Names of the internal topics of the transport, without the prefix.
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

// Retention of messages: longer than consumers are expected to be down, or as long as people
// look up old messages.
const (
	defaultRetention   = 7 * day
	ephemeralRetention = time.Hour
	longRetention      = 90 * day
)

// Spec describes a topic for Ensure.
type Spec struct {
	// Name has the prefix.
	Name string
	// Settings are those of a topic that is created, in addition to min.insync.replicas.
	Settings map[string]string
	// Compacted topics must have the cleanup policy compact; others must not.
	Compacted bool
	// Empty marks a topic to which nothing is written.
	Empty bool
	// Outlet marks a topic that only other programs read: it may have any number of partitions, and if it is Compacted
	// at least as many as there are lanes. A key of a compacted one never changes its partition.
	Outlet bool
	// Ephemeral marks a topic whose records may be lost.
	Ephemeral bool
}

// Specs returns the topics that a transport of c with topics needs: state and lanes first,
// then the others by name. Names in topics are without the prefix.
//
// Subscriptions and notifications are not compacted: their keys are the page and the receiver,
// and compaction would keep only the last record of each. Subscriptions have a long retention
// because people look up old ones.
func (c Config) Specs(topics map[string]flow.Topic) []Spec {
	all := []Spec{
		{Name: c.Prefix + TopicState, Compacted: true, Settings: compacted()},
		{Name: c.Prefix + TopicLanes, Empty: true, Settings: map[string]string{cleanupPolicy: policyDelete}},
	}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		if !topics[name].HasLog() {
			continue
		}
		if topics[name].Table {
			all = append(all, Spec{Name: c.Prefix + name, Compacted: true, Outlet: topics[name].IsOutlet(), Settings: compacted()})
			continue
		}
		keep := defaultRetention
		switch {
		case topics[name].Ephemeral:
			keep = ephemeralRetention
		case name == flow.TopicDead, name == flow.TopicSubscriptions:
			keep = longRetention
		}
		all = append(all, Spec{Name: c.Prefix + name, Ephemeral: topics[name].Ephemeral, Outlet: topics[name].IsOutlet(), Settings: map[string]string{
			cleanupPolicy:   policyDelete,
			maxMessageBytes: strconv.Itoa(client.MaxMessage),
			retentionMs:     millis(keep),
		}})
	}
	return all
}

// compacted returns the settings of a topic of which the last record of each key counts. Who reads it from the
// beginning within a week sees each tombstone.
func compacted() map[string]string {
	return map[string]string{
		cleanupPolicy:         policyCompact,
		maxMessageBytes:       strconv.Itoa(client.MaxMessage),
		"segment.ms":          millis(day),
		"delete.retention.ms": millis(7 * day),
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Standing describes an existing topic.
type Standing struct {
	// ID changes when a topic is deleted and created again.
	ID         string
	Partitions int
	replicas   int
	leaderless int // how many partitions have no leader, or everything is still unknown
	settings   map[string]string
}

// The settings that inspect checks.
var inspectedSettings = []string{cleanupPolicy, maxMessageBytes, retentionMs, minInsync}

// Describe returns the existing topics of specs by name.
func Describe(admin sarama.ClusterAdmin, specs []Spec) (map[string]Standing, error) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	topics, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("kafka: what topics there are: %w", err)
	}
	have := map[string]Standing{}
	var resources []*sarama.ConfigResource
	var denied []string
	for _, t := range topics {
		switch {
		case errors.Is(t.Err, sarama.ErrUnknownTopicOrPartition):
			continue
		case errors.Is(t.Err, sarama.ErrTopicAuthorizationFailed):
			denied = append(denied, t.Name)
			continue
		case !errors.Is(t.Err, sarama.ErrNoError) && !errors.Is(t.Err, sarama.ErrLeaderNotAvailable):
			return nil, fmt.Errorf("kafka: topic %s: %w", t.Name, t.Err)
		}
		s := Standing{ID: t.Uuid.String(), Partitions: len(t.Partitions), settings: map[string]string{}}
		for _, p := range t.Partitions {
			s.replicas = max(s.replicas, len(p.Replicas))
			if p.Leader < 0 {
				s.leaderless++
			}
		}
		if t.Uuid == (sarama.Uuid{}) || s.Partitions == 0 {
			s.leaderless++ // right after its creation
		}
		have[t.Name] = s
		resources = append(resources, &sarama.ConfigResource{Type: sarama.TopicResource, Name: t.Name, ConfigNames: inspectedSettings})
	}
	if len(denied) > 0 {
		return nil, fmt.Errorf("kafka: this process may not see the topics %s: allow Describe on them, and Create if they are missing", strings.Join(denied, ", "))
	}
	configs, err := admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, fmt.Errorf("kafka: settings of topics: %w", err)
	}
	for _, r := range configs {
		switch {
		case errors.Is(r.ErrorCode, sarama.ErrUnknownTopicOrPartition): // gone, or not known everywhere
			delete(have, r.Name)
			continue
		case errors.Is(r.ErrorCode, sarama.ErrTopicAuthorizationFailed):
			denied = append(denied, r.Name)
			continue
		case !errors.Is(r.ErrorCode, sarama.ErrNoError):
			return nil, fmt.Errorf("kafka: settings of topic %s: %w: %s", r.Name, r.ErrorCode, r.ErrorMsg)
		}
		for _, e := range r.Configs {
			have[r.Name].settings[e.Name] = e.Value
		}
	}
	if len(denied) > 0 {
		return nil, fmt.Errorf("kafka: this process may not see the settings of the topics %s: allow DescribeConfigs on them", strings.Join(denied, ", "))
	}
	return have, nil
}
