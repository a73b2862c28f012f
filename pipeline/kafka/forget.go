package kafka

import (
	"time"

	"github.com/vokter/vokter/pipeline/store"
)

// keepFor is how long the copy of a lane that another process owns is kept: a lane that
// comes back within that time is restored quickly.
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
	if s.tenure != nil {
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
