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

// declaredTopic returns the declaration of a topic.
func (t *Transport) declaredTopic(name string) flow.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.topics[name]
}

// ensureTopic creates topic if it was not declared at Start. It gives up with the cause of ctx when
// that is done, and when the Transport is closed.
func (t *Transport) ensureTopic(ctx context.Context, topic string) error {
	if t.isKnownTopic(topic) {
		return nil
	}
	if !t.ready.Load() {
		return ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.workCtx, func() { cancel(ErrClosed) })()
	select {
	case t.creatingTopic <- struct{}{}:
		defer func() { <-t.creatingTopic }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.isKnownTopic(topic) {
		return nil
	}
	c := t.cfg
	c.Lanes = t.lanes
	a := c.adminConfig()
	info, err := admin.Ensure(ctx, t.admin, a, a.Specs(map[string]flow.Topic{topic: {}}))
	if err != nil {
		return err
	}
	if info.Lanes != t.lanes {
		return fmt.Errorf("kafka: topic %s has %d partitions and the others have %d", t.cfg.Prefix+topic, info.Lanes, t.lanes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.topicInfo.IDs, info.IDs)
	t.topics[topic] = flow.Topic{}
	return nil
}

// isKnownTopic reports whether topic was declared or created.
func (t *Transport) isKnownTopic(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.topics[topic]
	return ok
}

// ensureTopics creates the missing topics of out.
func (t *Transport) ensureTopics(ctx context.Context, out []output) error {
	for _, o := range out {
		if err := t.ensureTopic(ctx, o.topic); err != nil {
			return err
		}
	}
	return nil
}

// knownTopics returns the topics that this process works with.
func (t *Transport) knownTopics() admin.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return admin.Info{Lanes: t.topicInfo.Lanes, IDs: maps.Clone(t.topicInfo.IDs)}
}

// watchBrokers checks at intervals whether the brokers answer, whether rights are missing, and
// whether the topics are still those of the start.
func (t *Transport) watchBrokers() {
	defer close(t.watchDone)
	look := time.NewTicker(watchInterval)
	defer look.Stop()
	var looked time.Time
	for {
		select {
		case <-look.C:
		case <-t.workCtx.Done():
			return
		}
		err := client.Run(t.workCtx, func() error { return t.cfg.clusterConfig().Ask(t.saramaConfig) })
		if err != nil {
			if t.workCtx.Err() == nil {
				t.reportFailure("no broker answers", err)
				t.setWaiting(t.cfg.clusterConfig().Unanswered(err))
			}
			continue
		}
		t.setAnswering()
		if t.Ready() != nil || time.Since(looked) > topicCheckInterval {
			t.checkRights()
		}
		if time.Since(looked) > topicCheckInterval {
			looked = time.Now()
			t.checkTopics()
			if err := t.dropStaleCopies(); err != nil {
				t.log.Error("kafka: dropping copies of lanes that other processes own failed", "error", err)
			}
		}
	}
}

// checkTopics stops the Transport if a topic got more partitions, so that keys are in other lanes than their state,
// or was deleted and created again: its positions are invalid then.
func (t *Transport) checkTopics() {
	c := t.cfg.adminConfig()
	specs := c.Specs(t.declaredTopics())
	have, err := admin.Describe(t.admin, specs)
	if err != nil {
		return // the brokers are unreachable; the next round asks again
	}
	if err := c.Compare(t.knownTopics(), specs, have); err != nil {
		t.reportBroken(err)
	}
}

// checkRights asks the brokers which rights are missing: many requests do not fail clearly when
// a right is denied.
func (t *Transport) checkRights() {
	missing, err := client.Do(t.workCtx, func() (string, error) {
		conn, err := sarama.NewClient(t.cfg.Brokers, client.Once(t.saramaConfig))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return t.cfg.adminConfig().MissingRights(conn, t.declaredTopics())
	}, nil)
	if err != nil {
		return // the brokers are unreachable; the next round asks again
	}
	t.setMissingRights(missing)
}

// setMissingRights records which rights are missing and logs changes.
func (t *Transport) setMissingRights(missing string) {
	o, now := &t.outage, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch missing {
	case o.missingRights:
		return
	case "":
		t.log.Info("kafka: the missing rights were granted", "after", now.Sub(o.deniedAt).Round(100*time.Millisecond))
	default:
		t.log.Warn("kafka: rights are missing; waiting for them", "allow", missing)
	}
	if o.missingRights == "" {
		o.deniedAt = now
	}
	o.missingRights = missing
}

// reportBroken reports that the Transport cannot continue.
func (t *Transport) reportBroken(err error) {
	if t.wiring.OnBroken != nil {
		t.wiring.OnBroken(err)
		return
	}
	t.log.Error("kafka: the transport cannot continue", "error", err)
}
