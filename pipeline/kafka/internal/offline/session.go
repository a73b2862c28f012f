// Package offline reads and fills the state of a transport while no process works with it: for
// the export and the import of that state.
package offline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	// agreeFor is how long the brokers may disagree on who leads a partition.
	agreeFor   = time.Minute
	agreeEvery = 100 * time.Millisecond
	// fenceFor is how long taking a lane may take: longer than the producer tries.
	fenceFor = 3 * time.Minute
	// restoreBatch and restoreBytes are how many records are written to the copy at once.
	restoreBatch = 500
	restoreBytes = 4 << 20
)

var errFence = fmt.Errorf("kafka: the brokers did not end a transaction within %v", fenceFor)

// Config says which cluster holds the state.
type Config struct {
	admin.Config
	// Topics says which groups consume which topic.
	Topics map[string]flow.Topic
	// Now is the clock.
	Now func() time.Time
	// MemTable is how many bytes the copy of the state keeps in memory.
	MemTable uint64
}

// consumer is a consumer group's share in a topic; wakeOf names a wake, place the state of a
// group for a key.
type (
	consumer struct{ group, topic string }
	wakeOf   struct {
		consumer
		key string
	}
	place struct{ group, key string }
	wake  struct {
		key     string
		at      time.Time
		atStart bool
	}
)

// session owns all lanes while no process works, to read their state or to fill them.
type session struct {
	Config
	conn    admin.Connection
	lanes   int
	lineage string
	cache   *store.DB
	// producers are those that own the lanes.
	producers []sarama.SyncProducer
	// ends are where the partitions of the state topic ended when the lanes were taken, or
	// behind the records that the session wrote since.
	ends []int64
}

// waiting ignores what the session waits for: the caller's context bounds that.
func waiting(error) {}

// connect waits for brokers and makes the topics that are missing.
func (s *session) connect(ctx context.Context) (err error) {
	if s.conn, err = s.Connect(ctx, s.Topics, waiting); err != nil {
		return err
	}
	s.lanes, s.lineage = s.conn.Topics.Lanes, s.conn.Topics.IDs[s.state()]
	return nil
}

// state is the name of the state topic.
func (s *session) state() string { return s.Prefix + admin.TopicState }

// unused refuses while a process is a member of the consumer group.
func (s *session) unused() error {
	denied := fmt.Errorf("kafka: we may not see the consumer group %s: allow Describe on it", s.Group)
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

// takeAll takes all lanes: their earlier owners are fenced, and their state is in a copy in dir,
// which is empty, or in memory.
func (s *session) takeAll(ctx context.Context, dir string) (err error) {
	if s.cache, err = store.Open(store.Options{Dir: dir, Lanes: s.lanes, MemTable: s.MemTable, Logger: s.Logger}); err != nil {
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
		if err := s.agreed(ctx, s.state(), func() error { return s.take(ctx, reader, lane) }); err != nil {
			return fmt.Errorf("kafka: taking lane %d: %w", lane, err)
		}
	}
	s.ends, err = s.newest(ctx)
	return err
}

// take fences the owner of lane and copies the lane's state.
func (s *session) take(ctx context.Context, reader sarama.Consumer, lane int) error {
	conf, err := s.TxnConfig(fmt.Sprintf("%s-%d", s.Group, lane))
	if err != nil {
		return err
	}
	open := func() (sarama.SyncProducer, error) { return client.NewProducer(s.Brokers, conf) }
	p, err := client.Do(ctx, open, func(late sarama.SyncProducer) { _ = late.Close() })
	if err != nil {
		return fmt.Errorf("fencing the earlier owner: %w", err)
	}
	s.producers = append(s.producers, p)
	nonce := rand.Text()
	fence := changelog.Messages(s.state(), lane, map[string][]byte{changelog.Key(changelog.KindFence): []byte(nonce)})
	limited, cancel := context.WithTimeoutCause(ctx, fenceFor, errFence)
	defer cancel()
	if err := client.Run(limited, func() error { return client.Transact(p, fence) }); err != nil {
		return fmt.Errorf("fencing the earlier owner: %w", err)
	}
	if err := s.copyLane(ctx, reader, lane, nonce); err != nil {
		return fmt.Errorf("restoring its state: %w", err)
	}
	return nil
}

// copyLane reads the state of lane up to the fence with nonce into the copy.
func (s *session) copyLane(ctx context.Context, reader sarama.Consumer, lane int, nonce string) error {
	pc, err := client.OpenPartition(ctx, reader, s.state(), lane, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer client.ClosePartition(pc)
	records, size := make(map[string][]byte), 0
	return changelog.Read(ctx, pc, func(m *sarama.ConsumerMessage) (bool, error) {
		records[string(m.Key)] = m.Value
		size += len(m.Value)
		fence := changelog.IsFence(m, nonce)
		if !fence && len(records) < restoreBatch && size < restoreBytes {
			return false, nil
		}
		err := s.write(lane, records)
		clear(records)
		size = 0
		return fence, err
	})
}

// write puts records into the copy of lane.
func (s *session) write(lane int, records map[string][]byte) error {
	b, err := s.cache.NewBatch(false)
	if err != nil {
		return err
	}
	defer b.Close()
	for key, value := range records {
		if err := changelog.Apply(b, lane, key, value); err != nil {
			return err
		}
	}
	return b.Commit(false)
}

// newest are the ends of the partitions of the state topic.
func (s *session) newest(ctx context.Context) ([]int64, error) {
	ends := make([]int64, s.lanes)
	for lane := range ends {
		var err error
		if _, ends[lane], err = s.bounds(ctx, s.state(), int32(lane)); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// bounds are the offsets at which a partition begins and ends.
func (s *session) bounds(ctx context.Context, topic string, partition int32) (oldest, newest int64, err error) {
	err = s.agreed(ctx, topic, func() error {
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

// agreed calls f until it does not fail any more because the brokers do not agree yet, or
// again, on who leads the partitions of topic.
func (s *session) agreed(ctx context.Context, topic string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, agreeFor)
	defer cancel()
	for {
		err := f()
		if !errors.Is(err, sarama.ErrNotLeaderForPartition) && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) && !client.Away(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(agreeEvery):
		}
		if err := s.conn.Client.RefreshMetadata(topic); err != nil && !client.Away(err) {
			return err
		}
	}
}

// untouched refuses where a process has begun to work since the lanes were taken.
func (s *session) untouched(ctx context.Context) error {
	now, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(now, s.ends) {
		return errors.New("kafka: a process began to work meanwhile: stop all of them first")
	}
	return s.unused()
}

// Close gives the lanes up.
func (s *session) Close() error {
	var errs []error
	for _, p := range s.producers {
		_ = p.Close() // no transaction is open in it
	}
	if s.cache != nil {
		errs = append(errs, s.cache.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}

// kept is what the transport itself keeps in the state topic.
type kept struct {
	// topics are the topics that the owners of lanes worked with; zero if no lane had an owner.
	topics    admin.Info
	clock     time.Time
	positions []map[consumer]int64 // by lane
}

// kept reads what the lanes say, and calls each with their wakes.
func (s *session) kept(each func(lane int, who consumer, w wake) error) (kept, error) {
	k := kept{positions: make([]map[consumer]int64, s.lanes)}
	for lane := range s.lanes {
		k.positions[lane] = make(map[consumer]int64)
		var failure error
		err := s.cache.ScanState(nil, changelog.OwnGroup, lane, changelog.OwnKey, "", func(name string, value []byte) bool {
			failure = k.add(lane, name, value, each)
			return failure == nil
		})
		if err = errors.Join(err, failure); err != nil {
			return k, err
		}
	}
	return k, nil
}

func (k *kept) add(lane int, key string, value []byte, each func(int, consumer, wake) error) error {
	kind, parts, err := changelog.Split(key)
	if err != nil {
		return err
	}
	switch kind {
	case changelog.KindPosition:
		k.positions[lane][consumer{parts[0], parts[1]}], err = changelog.DecodeOffset(value)
	case changelog.KindWake:
		w := wake{key: parts[2]}
		if w.at, w.atStart, err = changelog.DecodeWake(value); err == nil {
			err = each(lane, consumer{parts[0], parts[1]}, w)
		}
	case changelog.KindClock:
		var at time.Time
		if at, err = changelog.DecodeTime(value); at.After(k.clock) {
			k.clock = at
		}
	case changelog.KindTopics:
		var info admin.Info
		if err = json.Unmarshal(value, &info); err == nil && info.Lanes != 0 {
			k.topics.Lanes = info.Lanes
			if k.topics.IDs == nil {
				k.topics.IDs = make(map[string]string)
			}
			maps.Copy(k.topics.IDs, info.IDs)
		}
	}
	return err
}
