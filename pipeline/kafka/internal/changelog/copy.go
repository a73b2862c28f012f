package changelog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
)

// The copy of a lane keeps the transport's own records as the state of a reserved group.
const (
	OwnGroup = "\x00kafka"
	ownKey   = "lane"
	// ownEnd is the name of the value that WriteEnd writes.
	ownEnd = "\x00at"
)

// Copy reads pc up to the fence with nonce, and passes the records to write in batches: the last value
// of each key, how many records were read for the batch, and the offset behind them. It returns the
// cause of ctx when ctx is done.
func Copy(ctx context.Context, pc sarama.PartitionConsumer, nonce string, write func(records map[string][]byte, read int, next int64) error) error {
	const most, mostBytes = 500, 4 << 20 // of one batch
	records, read, bytes := make(map[string][]byte), 0, 0
	for {
		select {
		case m, ok := <-pc.Messages():
			if !ok {
				return errors.New("the records of the state topic ended early")
			}
			records[string(m.Key)] = m.Value
			read++
			bytes += len(m.Value)
			fence := string(m.Key) == Key(KindFence) && string(m.Value) == nonce
			if !fence && len(records) < most && bytes < mostBytes {
				continue
			}
			if err := write(records, read, m.Offset+1); err != nil || fence {
				return err
			}
			clear(records)
			read, bytes = 0, 0
		case err := <-pc.Errors():
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Apply writes records of the state topic to b, for the copy of their lane. A nil value is a
// tombstone.
func Apply(b *store.Batch, lane int, records map[string][]byte) error {
	for key, value := range records {
		kind, parts, err := parseKey(key)
		if err != nil {
			return err
		}
		group, of, name := OwnGroup, ownKey, key
		switch kind {
		case KindFence:
			continue
		case KindState:
			group, of, name = parts[0], parts[1], parts[2]
		}
		if value == nil {
			b.DeleteState(group, lane, of, name)
		} else {
			b.SetState(group, lane, of, name, value)
		}
	}
	return nil
}

// WriteEnd writes to b that the copy of a lane is complete up to the offset end of the state topic, at the
// time at.
func WriteEnd(b *store.Batch, lane int, end int64, at time.Time) {
	b.SetState(OwnGroup, lane, ownKey, ownEnd, append(binary.BigEndian.AppendUint64(nil, uint64(end)), EncodeTime(at)...))
}

// Own is what the copy of a lane has of the transport's own records.
type Own struct {
	// Positions are the next offsets to handle.
	Positions map[engine.Consumer]int64
	// Clock is the latest time seen; zero if there is none.
	Clock time.Time
	// Topics are those that the last owner knew; zero if there was none.
	Topics admin.Info
	// End is the offset up to which the copy is complete, and At when that was written; zero if it was
	// not.
	End int64
	At  time.Time
}

// ReadOwn reads the transport's own records from the copy of a lane.
func ReadOwn(copied *store.DB, lane int) (Own, error) {
	own := Own{Positions: make(map[engine.Consumer]int64)}
	for name, v := range copied.ScanState(OwnGroup, lane, ownKey, "") {
		if v.Err != nil {
			return own, v.Err
		}
		if name == ownEnd {
			if len(v.Bytes) >= 16 {
				own.End = int64(binary.BigEndian.Uint64(v.Bytes))
				own.At, _ = decodeTime(v.Bytes[8:]) // it has 8 bytes
			}
			continue
		}
		if err := own.addRecord(name, v.Bytes); err != nil {
			return own, err
		}
	}
	return own, nil
}

func (o *Own) addRecord(key string, value []byte) error {
	kind, parts, err := parseKey(key)
	if err != nil {
		return err
	}
	switch kind {
	case KindPosition:
		o.Positions[engine.Consumer{Group: parts[0], Topic: parts[1]}], err = decodeOffset(value)
	case KindClock:
		o.Clock, err = decodeTime(value)
	case KindTopics:
		if err := json.Unmarshal(value, &o.Topics); err != nil {
			return failure.Broken(fmt.Errorf("kafka: the record of the topics in the state topic is damaged: %w", err))
		}
	}
	return err
}
