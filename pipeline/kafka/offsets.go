package kafka

import (
	"fmt"
	"maps"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// offsetInterval is how often positions are committed as offsets.
const offsetInterval = 2 * time.Second

// reportOffsets commits the positions of the lanes of this process as offsets of the consumer group, so that the tools
// of Kafka show its lag, until s ends. Nothing reads them: the positions that count are in the state of each lane, and
// move in its transactions. In these, offsets would cost two more requests each.
func (t *Transport) reportOffsets(s sarama.ConsumerGroupSession) {
	tick := time.NewTicker(offsetInterval)
	defer tick.Stop()
	reported := make(map[topicLane]int64)
	isKnown := false // that they cannot be committed
	for {
		select {
		case <-s.Context().Done():
			return
		case <-tick.C:
		}
		offsets := t.offsets()
		maps.DeleteFunc(offsets, func(at topicLane, offset int64) bool { return reported[at] == offset })
		if len(offsets) == 0 {
			continue
		}
		err := client.Run(s.Context(), func() error { return t.commitOffsets(s, offsets) })
		if err == nil {
			maps.Copy(reported, offsets)
		} else if s.Context().Err() == nil && !isKnown {
			isKnown = true
			t.log.Warn("kafka: the positions could not be committed as offsets, so the tools of Kafka show an old lag; nothing else needs them",
				"group", t.cfg.Group, "error", t.cfg.cause(err))
		}
	}
}

// offsets returns the positions of the lanes of this process: of several groups that read a topic, the lowest.
func (t *Transport) offsets() map[topicLane]int64 {
	all := make(map[topicLane]int64)
	for lane := range t.slots {
		if n := t.lease(lane); n != nil {
			n.runMu.Lock()
			for _, c := range n.allCursors() {
				at := topicLane{c.consumer.Topic, lane}
				if offset, _ := c.progress(); offset > 0 && (all[at] == 0 || offset < all[at]) {
					all[at] = offset
				}
			}
			n.runMu.Unlock()
		}
	}
	return all
}

// progress returns how far c is, and where its topic ends; 0 where it does not read. What it has looked at counts:
// behind the last message there may be the end of a transaction, which takes an offset too. lease.runMu is held.
func (c *cursor) progress() (offset, end int64) {
	src := c.currentSource()
	if c.seat.Runner == nil || src == nil {
		return 0, 0
	}
	end = src.highWaterMark()
	if !c.seat.Runner.Busy() && src.isAtEnd() && !c.isBehind() {
		return end, end
	}
	return c.lease.position(c.consumer), end
}

// commitOffsets commits offsets for the member of s.
func (t *Transport) commitOffsets(s sarama.ConsumerGroupSession, offsets map[topicLane]int64) error {
	coordinator, err := t.client.Coordinator(t.cfg.Group)
	if err != nil {
		return err
	}
	r := &sarama.OffsetCommitRequest{
		Version: 6, ConsumerGroup: t.cfg.Group, ConsumerGroupGeneration: s.GenerationID(), ConsumerID: s.MemberID(),
	}
	if t.cfg.InstanceID != "" {
		r.Version, r.GroupInstanceId = 7, &t.cfg.InstanceID
	}
	for at, offset := range offsets {
		r.AddBlockWithLeaderEpoch(t.cfg.Prefix+at.topic, int32(at.lane), offset, -1, 0, "")
	}
	answer, err := coordinator.CommitOffset(r)
	if err != nil {
		_ = t.client.RefreshCoordinator(t.cfg.Group) // it may be another broker now
		return err
	}
	for topic, partitions := range answer.Errors {
		for partition, err := range partitions {
			switch err {
			case sarama.ErrNoError, sarama.ErrRebalanceInProgress, sarama.ErrIllegalGeneration: // the next session commits
			default:
				return fmt.Errorf("topic %s, partition %d: %w", topic, partition, err)
			}
		}
	}
	return nil
}
