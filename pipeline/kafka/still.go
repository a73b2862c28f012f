package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// still is a Transport that handles nothing: it owns all lanes while no process does, to read
// their state or to fill them.
type still struct {
	*Transport
	tenures []*tenure
	// ends are where the partitions of the state topic ended when the lanes were taken, or
	// behind what was written since.
	ends []int64
}

// newStill returns one that has not connected yet. Copies of the lanes are kept in dir, or in
// memory.
func newStill(c Config, dir string) (*still, error) {
	t, err := New(c)
	if err != nil {
		return nil, err
	}
	t.cfg.Dir = dir
	t.wire(flow.Wiring{Topics: c.Topics})
	return &still{Transport: t}, nil
}

// unused refuses while a process is a member of the consumer group.
func (s *still) unused() error {
	denied := fmt.Errorf("kafka: we may not see the consumer group %s: allow Describe on it", s.cfg.Group)
	groups, err := s.admin.DescribeConsumerGroups([]string{s.cfg.Group})
	if errors.Is(err, sarama.ErrGroupAuthorizationFailed) {
		return denied
	}
	if err != nil {
		return fmt.Errorf("kafka: who is in the consumer group %s: %w", s.cfg.Group, err)
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
				s.cfg.Group, strings.Join(slices.Compact(hosts), ", "))
		}
	}
	return nil
}

// takeAll takes all lanes: whoever had them is fenced, and their state is in the copy.
func (s *still) takeAll(ctx context.Context) error {
	if err := s.openCache(); err != nil {
		return err
	}
	var err error
	if s.restorer, err = sarama.NewConsumer(s.cfg.Brokers, s.base); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	s.owned = make([]slot, s.lanes)
	for lane := range s.lanes {
		err := s.agreed(ctx, s.cfg.Prefix+topicState, func() error {
			n := newTenure(s.Transport, lane)
			s.own(n)
			err := s.fill(ctx, n)
			if n.txns != nil {
				s.tenures = append(s.tenures, n)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("kafka: taking lane %d: %w", lane, err)
		}
	}
	s.ends, err = s.newest(ctx)
	return err
}

// newest are the ends of the partitions of the state topic.
func (s *still) newest(ctx context.Context) ([]int64, error) {
	ends := make([]int64, s.lanes)
	for lane := range ends {
		var err error
		if _, ends[lane], err = s.bounds(ctx, s.cfg.Prefix+topicState, int32(lane)); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// bounds are the offsets at which a partition begins and ends.
func (s *still) bounds(ctx context.Context, topic string, partition int32) (oldest, newest int64, err error) {
	err = s.agreed(ctx, topic, func() error {
		if oldest, err = s.client.GetOffset(topic, partition, sarama.OffsetOldest); err != nil {
			return err
		}
		newest, err = s.client.GetOffset(topic, partition, sarama.OffsetNewest)
		return err
	})
	if err != nil {
		err = fmt.Errorf("kafka: where topic %s begins and ends: %w", topic, err)
	}
	return oldest, newest, err
}

// agreed calls f until it does not fail any more because the brokers do not agree yet, or
// again, on who leads the partitions of topic.
func (s *still) agreed(ctx context.Context, topic string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	for {
		err := f()
		if !errors.Is(err, sarama.ErrNotLeaderForPartition) && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) && !away(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leaderPoll):
		}
		if err := s.client.RefreshMetadata(topic); err != nil && !away(err) {
			return err
		}
	}
}

// untouched refuses where a process has begun to work since the lanes were taken.
func (s *still) untouched(ctx context.Context) error {
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
func (s *still) Close() error {
	for _, n := range s.tenures {
		_ = n.txns.Close() // nothing is under way in it
	}
	return s.Transport.Close()
}

// kept is what the transport itself kept in the state topic.
type kept struct {
	// topics is what the owners of lanes knew of the topics; zero if no lane had an owner.
	topics    topicInfo
	clock     time.Time
	positions []map[consumer]int64 // by lane
}

// kept reads what the lanes say, and calls each with their wakes.
func (s *still) kept(each func(lane int, who consumer, w wake) error) (kept, error) {
	k := kept{positions: make([]map[consumer]int64, s.lanes)}
	for lane := range s.lanes {
		k.positions[lane] = make(map[consumer]int64)
		var failure error
		err := s.cache.ScanState(nil, ownGroup, lane, ownKey, "", func(name string, value []byte) bool {
			if name != ownAt {
				failure = k.add(lane, name, value, each)
			}
			return failure == nil
		})
		if err = errors.Join(err, failure); err != nil {
			return k, err
		}
	}
	return k, nil
}

func (k *kept) add(lane int, key string, value []byte, each func(int, consumer, wake) error) error {
	kind, parts, err := splitKey(key)
	if err != nil {
		return err
	}
	switch kind {
	case kindPosition:
		k.positions[lane][consumer{parts[0], parts[1]}], err = decodeOffset(value)
	case kindWake:
		var w wake
		if w, err = decodeWake(value); err == nil {
			w.key = parts[2]
			err = each(lane, consumer{parts[0], parts[1]}, w)
		}
	case kindClock:
		var at time.Time
		if at, err = decodeTime(value); at.After(k.clock) {
			k.clock = at
		}
	case kindTopics:
		var info topicInfo
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
