package kafka

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// declaredTopics returns all declared topics by name.
func (t *Transport) declaredTopics() map[string]flow.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.topics)
}

// topicOf returns the declaration of a topic.
func (t *Transport) topicOf(name string) flow.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.topics[name]
}

// ensure creates topic if it was not declared at Start. It gives up with the cause of ctx when
// that is done, and when the Transport is closed.
func (t *Transport) ensure(ctx context.Context, topic string) error {
	if t.knows(topic) {
		return nil
	}
	if !t.ready.Load() {
		return ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(ErrClosed) })()
	select {
	case t.making <- struct{}{}:
		defer func() { <-t.making }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.knows(topic) {
		return nil
	}
	c := t.cfg
	c.Lanes = t.lanes
	a := c.admin()
	info, err := admin.Ensure(ctx, t.admin, a, a.Specs(map[string]flow.Topic{topic: {}}))
	if err != nil {
		return err
	}
	if info.Lanes != t.lanes {
		return fmt.Errorf("kafka: topic %s has %d partitions and the others have %d", t.cfg.Prefix+topic, info.Lanes, t.lanes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.info.IDs, info.IDs)
	t.topics[topic] = flow.Topic{}
	return nil
}

// knows reports whether topic was declared or created.
func (t *Transport) knows(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.topics[topic]
	return ok
}

// ensureAll creates the missing topics of out.
func (t *Transport) ensureAll(ctx context.Context, out []output) error {
	for _, o := range out {
		if err := t.ensure(ctx, o.topic); err != nil {
			return err
		}
	}
	return nil
}

// known returns the topics that this process works with.
func (t *Transport) known() admin.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return admin.Info{Lanes: t.info.Lanes, IDs: maps.Clone(t.info.IDs)}
}

// watch checks at intervals whether the brokers answer, whether rights are missing, and
// whether the topics are still those of the start.
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
		err := client.Run(t.life, func() error { return t.cfg.cluster().Ask(t.base) })
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

// checkTopics stops the Transport if a topic was deleted and created again: its positions are
// invalid then.
func (t *Transport) checkTopics() {
	have, err := admin.Describe(t.admin, t.cfg.admin().Specs(t.declaredTopics()))
	if err != nil {
		return // the brokers are unreachable; the next round asks again
	}
	if err := admin.CheckKnown(t.known(), admin.InfoOf(have, t.lanes)); err != nil {
		t.broken(err)
	}
}

// checkRights asks the brokers which rights are missing: many requests do not fail clearly when
// a right is denied.
func (t *Transport) checkRights() {
	missing, err := client.Do(t.life, func() (string, error) {
		conn, err := sarama.NewClient(t.cfg.Brokers, client.Once(t.base))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return t.cfg.admin().MissingRights(conn, t.declaredTopics())
	}, nil)
	if err != nil {
		return // the brokers are unreachable; the next round asks again
	}
	t.deny(missing)
}

// deny records which rights are missing and logs changes.
func (t *Transport) deny(missing string) {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch missing {
	case o.missing:
		return
	case "":
		t.log.Info("kafka: the missing rights were granted", "after", now.Sub(o.deniedAt).Round(100*time.Millisecond))
	default:
		t.log.Warn("kafka: rights are missing; waiting for them", "allow", missing)
	}
	if o.missing == "" {
		o.deniedAt = now
	}
	o.missing = missing
}

// broken reports that the Transport cannot continue.
func (t *Transport) broken(err error) {
	if t.wiring.OnBroken != nil {
		t.wiring.OnBroken(err)
		return
	}
	t.log.Error("kafka: the transport cannot continue", "error", err)
}
