package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// topicInfo is what a transport remembers of its topics, as JSON.
type topicInfo struct {
	// Lanes is how many partitions each of them has.
	Lanes int `json:"lanes"`
	// IDs are the topics' IDs by name, with the prefix. A topic that is deleted and made
	// again has another one.
	IDs map[string]string `json:"ids"`
}

// standing is a topic as the cluster has it.
type standing struct {
	id         string
	partitions int
	replicas   int
	leaderless int // how many partitions have no leader
}

// ensureTopics makes what is missing of specs, unless c.NoCreate, waits until it can be
// written to, and checks what stands. All refusals are joined; errors for which away is
// true may pass. c has its defaults.
func ensureTopics(ctx context.Context, admin sarama.ClusterAdmin, c Config, specs []topicSpec) (topicInfo, error) {
	have, err := describe(admin, specs)
	if err != nil {
		return topicInfo{}, err
	}
	for _, spec := range specs {
		if _, ok := have[spec.Name]; ok {
			continue
		}
		err := admin.CreateTopic(spec.Name, &sarama.TopicDetail{NumPartitions: int32(c.Lanes), ReplicationFactor: 1, ConfigEntries: entries(spec.Settings)}, false)
		if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return topicInfo{}, fmt.Errorf("kafka: topic %s: %w", spec.Name, err)
		}
	}
	for {
		have, err = describe(admin, specs)
		if err != nil {
			return topicInfo{}, err
		}
		ready := len(have) == len(specs)
		for _, s := range have {
			ready = ready && s.leaderless == 0
		}
		if ready {
			break
		}
		select {
		case <-ctx.Done():
			return topicInfo{}, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	info := topicInfo{IDs: map[string]string{}}
	for name, s := range have {
		info.Lanes, info.IDs[name] = s.partitions, s.id
	}
	return info, nil
}

// describe returns those of specs that stand, by name.
func describe(admin sarama.ClusterAdmin, specs []topicSpec) (map[string]standing, error) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	found, err := admin.DescribeTopics(names)
	if err != nil {
		return nil, fmt.Errorf("kafka: topics: %w", err)
	}
	have := map[string]standing{}
	for _, t := range found {
		if errors.Is(t.Err, sarama.ErrUnknownTopicOrPartition) {
			continue
		}
		if !errors.Is(t.Err, sarama.ErrNoError) {
			return nil, fmt.Errorf("kafka: topic %s: %w", t.Name, t.Err)
		}
		s := standing{id: t.Uuid.String(), partitions: len(t.Partitions)}
		for _, p := range t.Partitions {
			s.replicas = max(s.replicas, len(p.Replicas))
			if p.Leader < 0 {
				s.leaderless++
			}
		}
		have[t.Name] = s
	}
	return have, nil
}

func entries(settings map[string]string) map[string]*string {
	m := map[string]*string{}
	for k, v := range settings {
		m[k] = &v
	}
	return m
}

// checkKnown refuses topics that are not those of the last run: with another number of
// partitions, keys lie in other lanes than their state, and in a topic that was made again
// the positions mean nothing.
func checkKnown(known, now topicInfo) error {
	var errs []error
	if known.Lanes != 0 && known.Lanes != now.Lanes {
		errs = append(errs, fmt.Errorf("kafka: the topics had %d partitions at the last run and have %d now", known.Lanes, now.Lanes))
	}
	for name, id := range known.IDs {
		if other, ok := now.IDs[name]; ok && other != id {
			errs = append(errs, fmt.Errorf("kafka: topic %s was deleted and made again since the last run", name))
		}
	}
	return errors.Join(errs...)
}
