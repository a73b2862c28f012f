// Package offline exports and imports the state of a transport while no process uses it.
package offline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/store"
)

const (
	// leaderTimeout is how long the brokers may disagree about the leader of a partition.
	leaderTimeout       = time.Minute
	leaderRetryInterval = 100 * time.Millisecond
	// fenceTimeout is how long fencing may take: longer than the producer retries.
	fenceTimeout = 3 * time.Minute
)

var errFenceTimeout = fmt.Errorf("kafka: the brokers did not end a transaction within %v", fenceTimeout)

// Config says which cluster holds the state.
type Config struct {
	admin.Config
	// Topics declares the topics and their groups.
	Topics map[string]flow.Topic
	// Now is the clock.
	Now func() time.Time
	// MemTable is how many bytes the copy of the state keeps in memory.
	MemTable uint64
}

// session owns all lanes to read or write their state while no process uses them.
type session struct {
	Config
	conn      admin.Connection
	lanes     int
	lineage   string
	stateCopy *store.DB
	// producers have fenced the previous owners of the lanes.
	producers []*client.Producer
	// ends are the ends of the partitions of the state topic when the lanes were taken, or after
	// the last records of the session.
	ends []int64
}

// ignoreWaiting ignores what the session waits for; the context of the caller limits that.
func ignoreWaiting(error) {}

// connect waits for brokers and creates missing topics.
func (s *session) connect(ctx context.Context) (err error) {
	if s.conn, err = s.Connect(ctx, s.Topics, ignoreWaiting); err != nil {
		return err
	}
	s.lanes, s.lineage = s.conn.Topics.Lanes, s.conn.Topics.IDs[s.stateTopic()]
	return nil
}

// stateTopic is the name of the state topic.
func (s *session) stateTopic() string { return s.Prefix + admin.TopicState }

// checkUnused returns an error while a process is a member of the consumer group.
func (s *session) checkUnused() error {
	denied := fmt.Errorf("kafka: this process may not see the consumer group %s: allow Describe on it", s.Group)
	groups, err := s.conn.Admin.DescribeConsumerGroups([]string{s.Group})
	if errors.Is(err, sarama.ErrGroupAuthorizationFailed) {
		return denied
	}
	if err != nil {
		return fmt.Errorf("kafka: who is in the consumer group %s: %w", s.Group, err)
	}
	for _, g := range groups {
		switch {
		case errors.Is(g.Err, sarama.ErrGroupAuthorizationFailed):
			return denied
		case len(g.Members) > 0:
			var hosts []string
			for _, m := range g.Members {
				hosts = append(hosts, strings.TrimPrefix(m.ClientHost, "/"))
			}
			slices.Sort(hosts)
			return fmt.Errorf("kafka: processes work in the consumer group %s (%s): stop them in order first; one that was killed, or has an instance_id, is a member until its session_timeout is over",
				s.Group, strings.Join(slices.Compact(hosts), ", "))
		}
	}
	return nil
}

// takeLanes fences the owners of all lanes and copies the state into the directory dir, or into
// memory if dir is empty.
func (s *session) takeLanes(ctx context.Context, dir string) (err error) {
	if s.stateCopy, err = store.Open(store.Options{Dir: dir, Lanes: s.lanes, MemTable: s.MemTable, Logger: s.Logger}); err != nil {
		return err
	}
	conf, err := s.Sarama()
	if err != nil {
		return err
	}
	reader, err := sarama.NewConsumer(s.Brokers, conf)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for lane := range s.lanes {
		if err := s.retryForLeader(ctx, s.stateTopic(), func() error { return s.takeLane(ctx, reader, lane) }); err != nil {
			return fmt.Errorf("kafka: taking lane %d: %w", lane, err)
		}
	}
	s.ends, err = s.stateEnds(ctx)
	return err
}

// takeLane fences the owner of lane and copies the lane's state.
func (s *session) takeLane(ctx context.Context, reader sarama.Consumer, lane int) error {
	p, err := s.Fencer(ctx, lane)
	if err != nil {
		return err
	}
	s.producers = append(s.producers, p)
	nonce := rand.Text()
	limited, cancel := context.WithTimeoutCause(ctx, fenceTimeout, errFenceTimeout)
	defer cancel()
	if err := client.Run(limited, func() error { return p.Transact(changelog.Fence(s.stateTopic(), lane, nonce)) }); err != nil {
		return fmt.Errorf("fencing the previous owner: %w", err)
	}
	if err := s.copyLane(ctx, reader, lane, nonce); err != nil {
		return fmt.Errorf("restoring its state: %w", err)
	}
	return nil
}

// copyLane copies the state of lane up to the fence with nonce.
func (s *session) copyLane(ctx context.Context, reader sarama.Consumer, lane int, nonce string) error {
	pc, err := client.OpenPartition(ctx, reader, s.stateTopic(), lane, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer client.ClosePartition(pc)
	return changelog.Copy(ctx, pc, nonce, func(records map[string][]byte, _ int, _ int64) error {
		return s.stateCopy.Write(false, func(b *store.Batch) error { return changelog.Apply(b, lane, records) })
	})
}

// stateEnds returns the ends of the partitions of the state topic.
func (s *session) stateEnds(ctx context.Context) ([]int64, error) {
	ends := make([]int64, s.lanes)
	for lane := range ends {
		var err error
		if _, ends[lane], err = s.bounds(ctx, s.stateTopic(), int32(lane)); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// bounds returns the first offset and the end of a partition.
func (s *session) bounds(ctx context.Context, topic string, partition int32) (oldest, newest int64, err error) {
	err = s.retryForLeader(ctx, topic, func() error {
		if oldest, err = s.conn.Client.GetOffset(topic, partition, sarama.OffsetOldest); err != nil {
			return err
		}
		newest, err = s.conn.Client.GetOffset(topic, partition, sarama.OffsetNewest)
		return err
	})
	if err != nil {
		err = fmt.Errorf("kafka: where topic %s begins and ends: %w", topic, err)
	}
	return oldest, newest, err
}

// retryForLeader calls f, and repeats that for leaderTimeout while f fails because the brokers do not agree
// about the leaders of the partitions of topic.
func (s *session) retryForLeader(ctx context.Context, topic string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	for {
		err := f()
		if !errors.Is(err, sarama.ErrNotLeaderForPartition) && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) && !client.Away(err) {
			return err
		}
		if client.Sleep(ctx, leaderRetryInterval) != nil {
			return err
		}
		if err := s.conn.Client.RefreshMetadata(topic); err != nil && !client.Away(err) {
			return err
		}
	}
}

// checkUntouched returns an error if a process has started since the lanes were taken.
func (s *session) checkUntouched(ctx context.Context) error {
	now, err := s.stateEnds(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(now, s.ends) {
		return errors.New("kafka: a process was started meanwhile: stop all processes first")
	}
	return s.checkUnused()
}

// Close gives up the lanes and disconnects.
func (s *session) Close() error {
	var errs []error
	for _, p := range s.producers {
		_ = p.Close() // no transaction is open in it
	}
	if s.stateCopy != nil {
		errs = append(errs, s.stateCopy.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}
