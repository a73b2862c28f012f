package kafka

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// How the brokers are watched.
const (
	lookEvery   = 2 * time.Second
	topicsEvery = time.Minute
	// slowCommit is after how long a transaction that has not ended is told.
	slowCommit = 10 * time.Second
)

// counts are figures for those who watch over the process.
type counts struct {
	commits, failed, restored atomic.Uint64
}

// Ready returns nil while messages of all lanes that this process was given are handled, and
// otherwise what it waits for. It returns at once.
func (t *Transport) Ready() error {
	if since, reason := t.away.present(time.Now()); reason != nil {
		return fmt.Errorf("kafka: %w (for %v)", reason, time.Since(since).Round(time.Second))
	}
	if !t.ready.Load() {
		return errors.New("kafka: connecting")
	}
	if err := t.room.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.joined {
		return fmt.Errorf("kafka: waiting for lanes in the consumer group %s", t.cfg.Group)
	}
	var left []string
	for lane := range t.assigned {
		if n := t.tenure(lane); n != nil {
			if d := n.hanging(); d > slowCommit {
				return fmt.Errorf("kafka: a transaction of lane %d has not ended for %v", lane, d.Round(time.Second))
			}
			continue
		}
		if r := t.restores[lane]; r != nil {
			left = append(left, fmt.Sprintf("lane %d: %d %%", lane, r.percent()))
		} else {
			left = append(left, fmt.Sprintf("lane %d", lane))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("kafka: restoring the state of %d of %d lanes (%s)", len(left), len(t.assigned), strings.Join(left[:min(len(left), 4)], ", "))
	}
	return nil
}

// Room returns nil while the disk of the copies has room, otherwise a channel that is closed
// when it has again.
func (t *Transport) Room() <-chan struct{} {
	if !t.ready.Load() {
		return nil
	}
	return t.room.Again()
}

// watch asks the brokers from time to time whether they are there, and whether the topics
// are those of the start.
func (t *Transport) watch() {
	defer close(t.watched)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var looked time.Time
	for {
		select {
		case <-look.C:
		case <-t.life.Done():
			return
		}
		_, err := client.Do(t.life, func() (struct{}, error) { return struct{}{}, t.cfg.cluster().Ask(t.base) }, nil)
		if err != nil {
			if t.life.Err() == nil {
				t.outage("no broker answers", err)
				t.waiting(t.cfg.cluster().Unanswered(err))
			}
			continue
		}
		t.answered()
		if t.Ready() != nil || time.Since(looked) > topicsEvery {
			t.checkRights()
		}
		if time.Since(looked) > topicsEvery {
			looked = time.Now()
			t.checkTopics()
			if err := t.dropStale(); err != nil {
				t.log.Error("kafka: dropping copies of lanes that other processes own failed", "error", err)
			}
		}
	}
}

// checkTopics stops the Transport where a topic was made anew: positions in it mean nothing.
func (t *Transport) checkTopics() {
	now, err := t.topicsNow()
	if err != nil {
		return // the brokers are away; it is asked again
	}
	if err := admin.CheckKnown(t.known(), now); err != nil {
		t.broken(err)
	}
}

// broken tells that the Transport cannot go on.
func (t *Transport) broken(err error) {
	if t.cfg.OnBroken != nil {
		t.cfg.OnBroken(err)
		return
	}
	t.log.Error("kafka: it cannot go on", "error", err)
}
