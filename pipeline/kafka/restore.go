package kafka

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/store"
)

// How a copy of a lane is brought up to date.
const (
	// trustFor is how old a copy may be: deletions of what it holds are kept in the state
	// topic for 7 days.
	trustFor = 6 * 24 * time.Hour
	// restoreBatch is how many records are written to the copy at once.
	restoreBatch = 500
)

// take makes this process the owner of lane: it fences the earlier owner and brings the copy
// of the lane up to where that one was stopped.
func (t *Transport) take(ctx context.Context, lane int) (*tenure, error) {
	n := newTenure(t, lane)
	t.own(n)
	err := t.fill(ctx, n)
	if err == nil {
		err = n.load()
	}
	if err == nil {
		err = n.remember(n.open)
	}
	if err != nil {
		t.disown(n)
		if n.txns != nil {
			go func() { _ = n.txns.Close() }() // it may wait for brokers that are away
		}
		return nil, fmt.Errorf("taking lane %d: %w", lane, err)
	}
	return n, nil
}

// fill fences the earlier owner of n's lane and brings the copy of it up to there.
func (t *Transport) fill(ctx context.Context, n *tenure) error {
	c, err := t.cfg.txnConfig(fmt.Sprintf("%s-%d", t.cfg.Group, n.lane))
	if err != nil {
		return err
	}
	open := func() (sarama.SyncProducer, error) { return newProducer(t.cfg.Brokers, c) }
	if n.txns, err = abandonable(ctx, open, func(p sarama.SyncProducer) { _ = p.Close() }); err != nil {
		return fmt.Errorf("fencing the earlier owner: %w", err)
	}
	fence := produced(t.cfg.Prefix, n.lane, nil, map[string][]byte{stateKey(kindFence): []byte(n.nonce)})
	if err := n.inTime(ctx, func() error { return transactOnce(n.txns, fence) }); err != nil {
		return fmt.Errorf("fencing the earlier owner: %w", err)
	}
	if err := t.restore(ctx, n, fence[0].Offset); err != nil {
		return fmt.Errorf("restoring its state: %w", err)
	}
	return nil
}

// restore reads the state topic from where the copy of n's lane ends up to n's fence, which
// is at offset end.
func (t *Transport) restore(ctx context.Context, n *tenure, end int64) error {
	from, err := t.copiedTo(n.lane)
	if err != nil {
		return err
	}
	pc, err := openPartition(ctx, t.restorer, t.cfg.Prefix+topicState, n.lane, from)
	if errors.Is(err, sarama.ErrOffsetOutOfRange) {
		from = sarama.OffsetOldest
		pc, err = openPartition(ctx, t.restorer, t.cfg.Prefix+topicState, n.lane, from)
	}
	if err != nil {
		return err
	}
	defer closePartition(pc)
	if from == sarama.OffsetOldest {
		if err := t.forget(n); err != nil {
			return err
		}
	}
	r := &restoration{t: t, n: n, end: end}
	r.at.Store(max(from, 0))
	r.from = max(from, 0)
	t.restoring(n.lane, r)
	defer t.restoring(n.lane, nil)
	for {
		select {
		case m, ok := <-pc.Messages():
			if !ok {
				return errors.New("the records of the state topic ended early")
			}
			done, err := r.add(m)
			if err != nil {
				return err
			}
			if done {
				return nil
			}
		case err := <-pc.Errors():
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// restoration gathers what is written to a copy at once.
type restoration struct {
	t         *Transport
	n         *tenure
	from, end int64
	at        atomic.Int64
	batch     map[string][]byte
	bytes     int
}

// add takes one record in, and reports whether it is the fence.
func (r *restoration) add(m *sarama.ConsumerMessage) (done bool, err error) {
	if r.batch == nil {
		r.batch = make(map[string][]byte)
	}
	key := string(m.Key)
	done = key == stateKey(kindFence) && string(m.Value) == r.n.nonce
	r.batch[key] = m.Value
	r.bytes += len(m.Value)
	r.at.Store(m.Offset)
	r.t.counts.restored.Add(1)
	if !done && len(r.batch) < restoreBatch && r.bytes < fullBytes {
		return false, nil
	}
	if err := r.t.copied(r.n, r.batch, m.Offset+1); err != nil {
		return false, err
	}
	r.batch, r.bytes = nil, 0
	return done, nil
}

// percent is how much of the state topic was read, by offsets.
func (r *restoration) percent() int64 {
	return 100 * (r.at.Load() - r.from) / max(r.end-r.from, 1)
}

// copiedTo returns the offset of the state topic at which the copy of lane ends;
// sarama.OffsetOldest where there is none that can be trusted.
func (t *Transport) copiedTo(lane int) (int64, error) {
	end, at, err := t.copyEnd(lane)
	if err != nil || at.IsZero() || t.cfg.Now().Sub(at) > trustFor {
		return sarama.OffsetOldest, err
	}
	if ours, err := t.copiedHere(lane); err != nil || !ours {
		return sarama.OffsetOldest, err
	}
	return end, nil
}

// copyEnd returns where the copy of lane ends, and when that was written; the zero time where
// there is none.
func (t *Transport) copyEnd(lane int) (end int64, at time.Time, err error) {
	v, ok, err := t.cache.GetState(nil, ownGroup, lane, ownKey, ownAt)
	if err != nil || !ok || len(v) < 16 {
		return 0, time.Time{}, err
	}
	at, err = decodeTime(v[8:])
	return int64(binary.BigEndian.Uint64(v)), at, err
}

// copiedHere reports whether the copy of lane is of topics with these names. That they are
// the same ones load finds out.
func (t *Transport) copiedHere(lane int) (bool, error) {
	v, ok, err := t.cache.GetState(nil, ownGroup, lane, ownKey, stateKey(kindTopics))
	if err != nil || !ok {
		return false, err
	}
	var of topicInfo
	if err := json.Unmarshal(v, &of); err != nil {
		return false, nil
	}
	_, ours := of.IDs[t.cfg.Prefix+topicState]
	return ours, nil
}

// copied writes committed records to the copy of n's lane, which is complete up to offset to
// then. It does so only while n is the lane's tenure here.
func (t *Transport) copied(n *tenure, records map[string][]byte, to int64) error {
	return t.whileOwned(n, func(b *store.Batch) error {
		for key, value := range records {
			if err := copyRecord(b, n.lane, key, value); err != nil {
				return err
			}
		}
		if to >= 0 {
			v := binary.BigEndian.AppendUint64(nil, uint64(to))
			b.SetState(ownGroup, n.lane, ownKey, ownAt, append(v, encodeTime(t.cfg.Now())...))
		}
		return nil
	})
}

// forget drops the copy of n's lane.
func (t *Transport) forget(n *tenure) error {
	return t.whileOwned(n, func(b *store.Batch) error { return b.DropLane(n.lane) })
}

// whileOwned commits what f writes, unless another tenure of the lane began.
func (t *Transport) whileOwned(n *tenure, f func(b *store.Batch) error) error {
	l := &t.owned[n.lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenure != n {
		return errMoved
	}
	return t.write(f)
}

// load reads what n needs of the copy of its lane.
func (n *tenure) load() error {
	var failure error
	err := n.t.cache.ScanState(nil, ownGroup, n.lane, ownKey, "", func(name string, value []byte) bool {
		if name != ownAt {
			failure = n.loadRecord(name, value)
		}
		return failure == nil
	})
	if err = errors.Join(err, failure); err != nil {
		return err
	}
	for _, q := range n.queues {
		q.restored()
	}
	if n.clock.Sub(n.t.cfg.Now()) > mill.SetBack {
		n.t.log.Warn("the clock was set back: all that was scheduled is looked at once", "lane", n.lane, "from", n.clock, "to", n.t.cfg.Now().UTC())
		for _, q := range n.queues {
			q.wakeAll()
		}
	}
	return nil
}

func (n *tenure) loadRecord(key string, value []byte) error {
	kind, parts, err := splitKey(key)
	if err != nil {
		return err
	}
	switch kind {
	case kindPosition:
		offset, err := decodeOffset(value)
		n.positions[consumer{parts[0], parts[1]}] = offset
		return err
	case kindWake:
		w, err := decodeWake(value)
		w.key = parts[2]
		n.wakesOf(consumer{parts[0], parts[1]}).restore(w)
		return err
	case kindClock:
		n.clock, err = decodeTime(value)
		return err
	case kindTopics:
		return n.t.remembered(value)
	}
	return nil
}
