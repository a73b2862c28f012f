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

// Info is the JSON record of its topics that a transport keeps in its state.
type Info struct {
	// Lanes is how many partitions each of them has.
	Lanes int `json:"lanes"`
	// IDs are the IDs of the topics by full name. A topic that is deleted and created again gets
	// another ID.
	IDs map[string]string `json:"ids"`
}

const (
	leaderTimeout      = time.Minute            // how long a new topic may take to get its leaders
	leaderPollInterval = 100 * time.Millisecond // how often that is checked
)

// Ensure creates the missing topics of specs, unless c.NoCreate is set, waits until they can be
// written to, and checks the settings of all of them. It joins everything that is wrong; a retry
// may help if client.Away reports true. When ctx is done it returns the cause at once.
func Ensure(ctx context.Context, admin sarama.ClusterAdmin, c Config, specs []Spec) (Info, error) {
	return client.Do(ctx, func() (Info, error) { return ensure(ctx, admin, c, specs) }, nil)
}

func ensure(ctx context.Context, admin sarama.ClusterAdmin, c Config, specs []Spec) (Info, error) {
	have, err := Describe(admin, specs)
	if err != nil {
		return Info{}, err
	}
	found := c.inspect(specs, have)
	if err := errors.Join(found.problems...); err != nil {
		return Info{}, err
	}
	if len(found.missing) > 0 {
		if err := c.createMissing(ctx, admin, found); err != nil {
			return Info{}, err
		}
		return ensure(ctx, admin, c, specs) // another process may have created some of them with other settings
	}
	for _, note := range append(found.warnings, brokerWarning(admin, hasSingleReplica(have))...) {
		c.Logger.Warn("kafka: " + note)
	}
	if found.lanes != c.Lanes {
		c.Logger.Info("kafka: the topics keep the partitions that they have", "partitions", found.lanes, "configured", c.Lanes)
	}
	return InfoOf(have, found.lanes), nil
}

// InfoOf returns the partitions and IDs of the topics have.
func InfoOf(have map[string]Standing, lanes int) Info {
	info := Info{Lanes: lanes, IDs: make(map[string]string, len(have))}
	for name, s := range have {
		info.IDs[name] = s.ID
	}
	return info
}

// createMissing creates the topics in found.missing. It returns early, without an error, when one of them turns
// out to exist: its number of partitions counts. The controller may know topics that the broker of Describe
// does not know yet, and another process may create them at the same time.
func (c Config) createMissing(ctx context.Context, admin sarama.ClusterAdmin, found findings) error {
	replicas, err := c.replicationFactor(admin)
	if err != nil {
		return err
	}
	// A rehearsal finds topics that cannot be created before the first one is created.
	for _, rehearse := range []bool{true, false} {
		for _, spec := range found.missing {
			stands, err := c.createTopic(admin, spec, found.lanes, replicas, rehearse)
			if err != nil {
				return err
			}
			if stands {
				return awaitLeaders(ctx, admin, []Spec{spec})
			}
			if !rehearse {
				c.Logger.Info("kafka: made a topic", "topic", spec.Name, "partitions", found.lanes, "replication", replicas)
			}
		}
	}
	return awaitLeaders(ctx, admin, found.missing)
}

// createTopic creates a topic, or with rehearse only validates that it can be created. It reports
// whether the topic already exists.
func (c Config) createTopic(admin sarama.ClusterAdmin, spec Spec, lanes, replicas int, rehearse bool) (stands bool, err error) {
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
		return false, fmt.Errorf("kafka: topic %s is missing and this process may not create it: allow Create on it, or run: %s", spec.Name, c.createCommand(spec, lanes, replicas))
	case errors.Is(err, sarama.ErrInvalidReplicationFactor):
		return false, fmt.Errorf("kafka: topic %s cannot be kept in %d brokers: lower replication: %w", spec.Name, replicas, err)
	}
	return false, fmt.Errorf("kafka: topic %s cannot be made: %w", spec.Name, err)
}

// replicationFactor returns the number of replicas of a topic that is created.
func (c Config) replicationFactor(admin sarama.ClusterAdmin) (int, error) {
	if c.Replication != 0 {
		return c.Replication, nil
	}
	brokers, _, err := admin.DescribeCluster()
	if err != nil {
		return 0, fmt.Errorf("kafka: how many brokers there are: %w", err)
	}
	return max(1, min(defaultReplication, len(brokers))), nil
}

// creationSettings returns the settings with which a topic of spec is created.
func creationSettings(spec Spec, replicas int) map[string]string {
	all := map[string]string{minInsync: "1"}
	if replicas >= 3 {
		all[minInsync] = "2" // an acknowledged record survives the loss of a broker
	}
	maps.Copy(all, spec.Settings)
	return all
}

// awaitLeaders returns once all topics of specs exist and have leaders.
func awaitLeaders(ctx context.Context, admin sarama.ClusterAdmin, specs []Spec) error {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	for {
		have, err := Describe(admin, specs)
		if err != nil {
			return err
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
			return nil
		}
		if err := client.Sleep(ctx, leaderPollInterval); err != nil {
			return fmt.Errorf("kafka: topics are not ready yet: %s: %w", strings.Join(late, ", "), err)
		}
	}
}
