package offline

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
)

const (
	// fetchVersion is the version of the fetch requests.
	fetchVersion = 11
	fetchBytes   = 8 << 20 // more than any record
	fetchWait    = 100 * time.Millisecond
	// openTxnTimeout is how long to wait for open transactions of other producers.
	openTxnTimeout = time.Minute
)

// describeUnhandled returns a line for each group and topic with messages that wait for the group. The
// positions of the groups are in owns, by lane; topics are the existing topics.
func (s *session) describeUnhandled(ctx context.Context, owns []changelog.Own, topics map[string]admin.Standing) ([]string, error) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.Topics)) {
		full := s.Prefix + name
		stands, ok := topics[full]
		if !ok || s.Topics[name].Ephemeral {
			continue
		}
		for _, group := range s.Topics[name].Groups {
			if !s.Topics[name].ReadBy(group) {
				continue
			}
			lanes := 0
			for lane := range stands.Partitions {
				var from int64
				// A topic that was created again has another ID: the position in it is invalid.
				if lane < len(owns) && cmp.Or(owns[lane].Topics.IDs[full], stands.ID) == stands.ID {
					from = owns[lane].Positions[engine.Consumer{Group: group, Topic: name}]
				}
				waits, err := s.hasUnhandled(ctx, full, int32(lane), from)
				if err != nil {
					return nil, fmt.Errorf("kafka: what waits in topic %s: %w", full, err)
				}
				if waits {
					lanes++
				}
			}
			if lanes > 0 {
				lines = append(lines, fmt.Sprintf("in %d of %d partitions of %s for %s", lanes, stands.Partitions, full, group))
			}
		}
	}
	return lines, nil
}

// hasUnhandled reports whether a partition has a message at or after offset from. It must read the
// records, since transactions and our markers take up offsets as well.
func (s *session) hasUnhandled(ctx context.Context, topic string, partition int32, from int64) (bool, error) {
	oldest, end, err := s.bounds(ctx, topic, partition)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTxnTimeout, fmt.Errorf("a transaction stays open in it for more than %v", openTxnTimeout))
	defer cancel()
	for from = max(from, oldest); from < end; {
		var block *sarama.FetchResponseBlock
		err := s.retryForLeader(ctx, topic, func() (err error) {
			block, err = s.fetch(topic, partition, from)
			return err
		})
		if err != nil {
			return false, err
		}
		found, next := findMessage(block, from)
		if found {
			return true, nil
		}
		if next == from && ctx.Err() != nil { // records after an open transaction are not readable
			return false, context.Cause(ctx)
		}
		from = next
	}
	return false, nil
}

// fetch reads committed records of a partition from an offset on.
func (s *session) fetch(topic string, partition int32, from int64) (*sarama.FetchResponseBlock, error) {
	leader, err := s.conn.Client.Leader(topic, partition)
	if err != nil {
		return nil, err
	}
	r := &sarama.FetchRequest{
		Version: fetchVersion, MinBytes: 1, MaxWaitTime: int32(fetchWait.Milliseconds()), MaxBytes: fetchBytes,
		Isolation: sarama.ReadCommitted, SessionEpoch: -1,
	}
	r.AddBlock(topic, partition, from, fetchBytes, -1)
	answer, err := leader.Fetch(r)
	if err != nil {
		return nil, err
	}
	block := answer.GetBlock(topic, partition)
	switch {
	case block == nil:
		return nil, sarama.ErrIncompleteResponse
	case block.Err != sarama.ErrNoError:
		return nil, block.Err
	}
	return block, nil
}

// findMessage reports whether block has a message at or after offset from, and the next offset to read.
func findMessage(block *sarama.FetchResponseBlock, from int64) (found bool, next int64) {
	next = from
	aborted := make(map[int64]bool) // by producer
	left := block.AbortedTransactions
	for _, set := range block.RecordsSet {
		b := set.RecordBatch
		if b == nil {
			return true, next // in the format of an old producer; not ours
		}
		for len(left) > 0 && left[0].FirstOffset <= b.LastOffset() {
			aborted[left[0].ProducerID] = true
			left = left[1:]
		}
		next = max(next, b.LastOffset()+1)
		switch {
		case b.Control:
			if endsAborted(b) {
				delete(aborted, b.ProducerID)
			}
		case b.IsTransactional && aborted[b.ProducerID]:
		case slices.ContainsFunc(b.Records, func(r *sarama.Record) bool { return b.FirstOffset+r.OffsetDelta >= from && !isMarker(r) }):
			return true, next
		}
	}
	return false, next
}

// endsAborted reports whether the control batch b ends a transaction that was aborted.
func endsAborted(b *sarama.RecordBatch) bool {
	return len(b.Records) == 1 && len(b.Records[0].Key) >= 4 && binary.BigEndian.Uint16(b.Records[0].Key[2:]) == 0
}

func isMarker(r *sarama.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h *sarama.RecordHeader) bool { return string(h.Key) == changelog.HeaderMarker })
}
