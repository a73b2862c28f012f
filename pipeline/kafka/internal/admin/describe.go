package admin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/cluster"
)

// Standing is a topic as the cluster has it.
type Standing struct {
	// ID changes when a topic is deleted and made again.
	ID         string
	Partitions int
	replicas   int
	leaderless int // how many partitions have no leader, or everything is still unknown
	settings   map[string]string
}

// The settings that decide whether a topic suits us.
var inspected = []string{cleanupPolicy, maxMessageBytes, retentionMs, minInsync}

// Describe returns those of specs that stand, by name.
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
			s.leaderless++ // right after a topic was made
		}
		have[t.Name] = s
		resources = append(resources, &sarama.ConfigResource{Type: sarama.TopicResource, Name: t.Name, ConfigNames: inspected})
	}
	if len(denied) > 0 {
		return nil, fmt.Errorf("kafka: we may not see the topics %s: allow Describe on them, and Create if they are missing", strings.Join(denied, ", "))
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
		return nil, fmt.Errorf("kafka: we may not see the settings of the topics %s: allow DescribeConfigs on them", strings.Join(denied, ", "))
	}
	return have, nil
}

// The levels of the feature metadata.version that brokers of 4.2 and 4.3 support at most.
const (
	feature    = "metadata.version"
	feature4_2 = 28
	feature4_3 = 30
)

// brokerWarning warns of a broker that can lose parts of transactions when it is killed
// (KAFKA-20734), which matters where alone: topics stand in one broker only. One that does
// not say what it is gets no warning.
func brokerWarning(admin sarama.ClusterAdmin, alone bool) []string {
	if !alone {
		return nil
	}
	b, err := admin.Controller()
	if err != nil {
		return nil
	}
	versions, err := b.ApiVersions(&sarama.ApiVersionsRequest{Version: 3, ClientSoftwareName: cluster.ClientID, ClientSoftwareVersion: "1"})
	if err != nil {
		return nil
	}
	for _, f := range versions.SupportedFeatures {
		if f.Name == feature && affected(f.MaxVersion) {
			return []string{"topics are kept in one broker only, and the broker is a Kafka of 4.2 or 4.3, which can lose half of a transaction when it is killed (KAFKA-20734); use replication 3, or 4.1"}
		}
	}
	return nil
}

// affected reports whether a broker that supports level at most has the bug.
func affected(level int16) bool { return level >= feature4_2 && level <= feature4_3 }

// single reports whether one of the topics stands in one broker only.
func single(have map[string]Standing) bool {
	for _, s := range have {
		if s.replicas == 1 {
			return true
		}
	}
	return false
}
