package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Info is what a transport remembers of its topics, as JSON.
type Info struct {
	// Lanes is how many partitions each of them has.
	Lanes int `json:"lanes"`
	// IDs are the topics' IDs by name, with the prefix. A topic that is deleted and made
	// again has another one.
	IDs map[string]string `json:"ids"`
}

const (
	leaderWait = time.Minute            // how long a topic that was just made may take
	leaderPoll = 100 * time.Millisecond // how often we look
)

// Ensure makes the topics of specs that are missing, unless c.NoCreate, waits until they can be
// written to, and checks what stands. All refusals are joined; a retry may help where
// client.Away reports true. When ctx is done it returns its cause at once.
func Ensure(ctx context.Context, admin sarama.ClusterAdmin, c Config, specs []Spec) (Info, error) {
	return client.Do(ctx, func() (Info, error) { return ensure(ctx, admin, c, specs) }, nil)
}

func ensure(ctx context.Context, admin sarama.ClusterAdmin, c Config, specs []Spec) (Info, error) {
	have, err := Describe(admin, specs)
	if err != nil {
		return Info{}, err
	}
	found := c.inspect(specs, have)
	if err := errors.Join(found.refusals...); err != nil {
		return Info{}, err
	}
	if len(found.missing) > 0 {
		if err := c.complete(ctx, admin, specs, have, found); err != nil {
			return Info{}, err
		}
		if have, err = await(ctx, admin, specs); err != nil {
			return Info{}, err
		}
		// Another process may have made some of them otherwise.
		found = c.inspect(specs, have)
		if err := errors.Join(found.refusals...); err != nil {
			return Info{}, err
		}
	}
	for _, note := range append(found.warnings, brokerWarning(admin, single(have))...) {
		c.Logger.Warn("kafka: " + note)
	}
	if found.lanes != c.Lanes {
		c.Logger.Info("kafka: the topics keep the partitions that they have", "partitions", found.lanes, "configured", c.Lanes)
	}
	info := Info{Lanes: found.lanes, IDs: map[string]string{}}
	for name, s := range have {
		info.IDs[name] = s.ID
	}
	return info, nil
}

// complete makes the topics that found misses. It may find that some of them stand.
func (c Config) complete(ctx context.Context, admin sarama.ClusterAdmin, specs []Spec, have map[string]Standing, found findings) error {
	replicas, err := c.replicas(admin)
	if err != nil {
		return err
	}
	// The controller knows of topics that the broker we asked has not heard of, and what it
	// would not make is better known before the first one is made.
	var hidden []Spec
	for _, spec := range found.missing {
		stands, err := c.create(admin, spec, found.lanes, replicas, true)
		if err != nil {
			return err
		}
		if stands {
			hidden = append(hidden, spec)
		}
	}
	if len(hidden) > 0 {
		more, err := await(ctx, admin, hidden)
		if err != nil {
			return err
		}
		maps.Copy(have, more)
		found = c.inspect(specs, have)
		if err := errors.Join(found.refusals...); err != nil {
			return err
		}
	}
	lanes := found.lanes
	for _, spec := range found.missing {
		stands, err := c.create(admin, spec, lanes, replicas, false)
		if err != nil {
			return err
		}
		if stands {
			// Another process makes them at the same time: its number counts for the rest.
			other, err := await(ctx, admin, []Spec{spec})
			if err != nil {
				return err
			}
			lanes = other[spec.Name].Partitions
			continue
		}
		c.Logger.Info("kafka: made a topic", "topic", spec.Name, "partitions", lanes, "replication", replicas)
	}
	return nil
}

// create makes a topic, or with rehearse asks whether it could be made. It reports whether
// the topic stands already.
func (c Config) create(admin sarama.ClusterAdmin, spec Spec, lanes, replicas int, rehearse bool) (stands bool, err error) {
	settings := map[string]*string{}
	for k, v := range creationSettings(spec, replicas) {
		settings[k] = &v
	}
	err = admin.CreateTopic(spec.Name, &sarama.TopicDetail{
		NumPartitions: int32(lanes), ReplicationFactor: int16(replicas), ConfigEntries: settings,
	}, rehearse)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, sarama.ErrTopicAlreadyExists):
		return true, nil
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed), errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return false, fmt.Errorf("kafka: topic %s is missing and we may not make it: allow Create on it, or run: %s", spec.Name, c.createCommand(spec, lanes, replicas))
	case errors.Is(err, sarama.ErrInvalidReplicationFactor):
		return false, fmt.Errorf("kafka: topic %s cannot be kept in %d brokers: lower replication: %w", spec.Name, replicas, err)
	}
	return false, fmt.Errorf("kafka: topic %s cannot be made: %w", spec.Name, err)
}

// replicas returns in how many brokers a topic is kept that is made now.
func (c Config) replicas(admin sarama.ClusterAdmin) (int, error) {
	if c.Replication != 0 {
		return c.Replication, nil
	}
	brokers, _, err := admin.DescribeCluster()
	if err != nil {
		return 0, fmt.Errorf("kafka: how many brokers there are: %w", err)
	}
	return max(1, min(DefaultReplication, len(brokers))), nil
}

// creationSettings returns what a topic of spec is made with.
func creationSettings(spec Spec, replicas int) map[string]string {
	all := map[string]string{minInsync: "1"}
	if replicas >= 3 {
		all[minInsync] = "2" // an acknowledged record outlives a broker
	}
	maps.Copy(all, spec.Settings)
	return all
}

// await returns specs once all of them stand, with leaders.
func await(ctx context.Context, admin sarama.ClusterAdmin, specs []Spec) (map[string]Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	for {
		have, err := Describe(admin, specs)
		if err != nil {
			return nil, err
		}
		var late []string
		for _, spec := range specs {
			if s, ok := have[spec.Name]; !ok {
				late = append(late, spec.Name)
			} else if s.leaderless > 0 {
				late = append(late, spec.Name+" ("+strconv.Itoa(s.leaderless)+" partitions without a leader)")
			}
		}
		if len(late) == 0 {
			return have, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("kafka: topics are not ready yet: %s: %w", strings.Join(late, ", "), context.Cause(ctx))
		case <-time.After(leaderPoll):
		}
	}
}
