package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
)

// standing is a topic as the cluster has it.
type standing struct {
	id         string
	partitions int
	replicas   int
	leaderless int // how many partitions have no leader, or everything is still unknown
	settings   map[string]string
}

// The settings that decide whether a topic suits us.
var inspected = []string{cleanupPolicy, maxMessageBytes, retentionMs, minInsync}

// describe returns those of specs that stand, by name.
func describe(admin sarama.ClusterAdmin, specs []topicSpec) (map[string]standing, error) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	topics, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("kafka: what topics there are: %w", err)
	}
	have := map[string]standing{}
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
		s := standing{id: t.Uuid.String(), partitions: len(t.Partitions), settings: map[string]string{}}
		for _, p := range t.Partitions {
			s.replicas = max(s.replicas, len(p.Replicas))
			if p.Leader < 0 {
				s.leaderless++
			}
		}
		if t.Uuid == (sarama.Uuid{}) || s.partitions == 0 {
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
