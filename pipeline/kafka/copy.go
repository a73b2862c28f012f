package kafka

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/IBM/sarama"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/store"
)

// keepFor is how long the copy of a lane that another process owns is kept: the lane is restored
// quickly if it comes back within that time.
const keepFor = time.Hour

// dropStale drops the copies of lanes that this process has not owned for keepFor.
func (t *Transport) dropStale() error {
	for lane := range t.owned {
		if err := t.dropIfStale(lane); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transport) dropIfStale(lane int) error {
	s := &t.owned[lane]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return nil
	}
	_, at, err := t.copyEnd(lane)
	if err != nil || at.IsZero() || t.cfg.Now().Sub(at) < keepFor {
		return err
	}
	return t.write(func(b *store.Batch) error { return b.DropLane(lane) })
}

// write commits what f writes to the copy of the state.
func (t *Transport) write(f func(b *store.Batch) error) error {
	b, err := t.cache.NewBatch(false)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := f(b); err != nil {
		return err
	}
	return b.Commit(false)
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
	v, ok, err := t.cache.GetState(nil, changelog.OwnGroup, lane, changelog.OwnKey, changelog.OwnAt)
	if err != nil || !ok || len(v) < 16 {
		return 0, time.Time{}, err
	}
	at, err = changelog.DecodeTime(v[8:])
	return int64(binary.BigEndian.Uint64(v)), at, err
}

// copiedHere reports whether the copy of lane is of topics with these names. That they are
// the same ones load finds out.
func (t *Transport) copiedHere(lane int) (bool, error) {
	v, ok, err := t.cache.GetState(nil, changelog.OwnGroup, lane, changelog.OwnKey, changelog.Key(changelog.KindTopics))
	if err != nil || !ok {
		return false, err
	}
	var of admin.Info
	if err := json.Unmarshal(v, &of); err != nil {
		return false, nil
	}
	_, ours := of.IDs[t.cfg.Prefix+admin.TopicState]
	return ours, nil
}

// copied writes committed records to the copy of n's lane, which is complete up to offset to
// then. It does so only while n is the lane's lease here.
func (t *Transport) copied(n *lease, records map[string][]byte, to int64) error {
	return t.whileOwned(n, func(b *store.Batch) error {
		for key, value := range records {
			if err := changelog.Apply(b, n.lane, key, value); err != nil {
				return err
			}
		}
		if to >= 0 {
			v := binary.BigEndian.AppendUint64(nil, uint64(to))
			b.SetState(changelog.OwnGroup, n.lane, changelog.OwnKey, changelog.OwnAt, append(v, changelog.EncodeTime(t.cfg.Now())...))
		}
		return nil
	})
}

// forget drops the copy of n's lane.
func (t *Transport) forget(n *lease) error {
	return t.whileOwned(n, func(b *store.Batch) error { return b.DropLane(n.lane) })
}

// whileOwned commits what f writes, unless another lease of the lane began.
func (t *Transport) whileOwned(n *lease, f func(b *store.Batch) error) error {
	l := &t.owned[n.lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != n {
		return errMoved
	}
	return t.write(f)
}
