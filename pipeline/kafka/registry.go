package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
)

// inbox returns the one of a consumer in a lane.
func (t *Transport) inbox(who consumer, lane int) *inbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.inboxes[who]
	if all == nil {
		all = make([]*inbox, t.lanes)
		for i := range all {
			all[i] = new(inbox)
		}
		t.inboxes[who] = all
	}
	return all[lane]
}

// clearInboxes drops what was posted to a lane that was given up.
func (t *Transport) clearInboxes(lane int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.inboxes {
		all[lane].clear()
	}
}

// posted reports whether posted messages wait.
func (t *Transport) posted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.inboxes {
		for _, b := range all {
			if !b.empty() {
				return true
			}
		}
	}
	return false
}

// groupReader reads topics for one group: a consumer of sarama reads a partition once, and
// asks for the records of all its partitions over one connection.
type groupReader struct {
	client   sarama.Client
	consumer sarama.Consumer
}

func (r *groupReader) close() error { return errors.Join(r.consumer.Close(), r.client.Close()) }

// reader returns what reads topics for group. It may wait for brokers.
func (t *Transport) reader(group string) (sarama.Consumer, error) {
	t.openMu.Lock()
	defer t.openMu.Unlock()
	t.mu.Lock()
	r := t.readers[group]
	t.mu.Unlock()
	if r != nil {
		return r.consumer, nil
	}
	client, err := sarama.NewClient(t.cfg.Brokers, t.base)
	if err != nil {
		return nil, err
	}
	c, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	r = &groupReader{client, c}
	t.mu.Lock()
	closed := t.life.Err() != nil
	if !closed {
		t.readers[group] = r
	}
	t.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, r.close())
	}
	return c, nil
}

func (t *Transport) takeReaders() map[string]*groupReader {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.readers
	t.readers = nil
	return all
}

// declaredTopics returns all topics that were declared, by name.
func (t *Transport) declaredTopics() map[string]flow.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.topics)
}

// topicOf returns how a topic was declared.
func (t *Transport) topicOf(name string) flow.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.topics[name]
}

// ensure makes topic if it was not declared at Start. It ends with ctx, whose cause it then
// returns, and with the Transport.
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
	for name, id := range info.IDs {
		t.info.IDs[name] = id
	}
	t.topics[topic] = flow.Topic{}
	return nil
}

// knows reports whether topic is there.
func (t *Transport) knows(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.topics[topic]
	return ok
}

// ensureAll makes the topics of out.
func (t *Transport) ensureAll(ctx context.Context, out []output) error {
	for _, o := range out {
		if err := t.ensure(ctx, o.topic); err != nil {
			return err
		}
	}
	return nil
}

// topicsNow asks which topics there are.
func (t *Transport) topicsNow() (admin.Info, error) {
	t.mu.Lock()
	specs := t.cfg.admin().Specs(t.topics)
	t.mu.Unlock()
	have, err := admin.Describe(t.admin, specs)
	if err != nil {
		return admin.Info{}, err
	}
	info := admin.Info{Lanes: t.lanes, IDs: make(map[string]string, len(have))}
	for name, s := range have {
		info.IDs[name] = s.ID
		if s.Partitions != t.lanes {
			info.Lanes = s.Partitions
		}
	}
	return info, nil
}

// known are the topics that this process works with.
func (t *Transport) known() admin.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	info := admin.Info{Lanes: t.info.Lanes, IDs: make(map[string]string, len(t.info.IDs))}
	for name, id := range t.info.IDs {
		info.IDs[name] = id
	}
	return info
}

// remembered compares the topics with those that an earlier owner of a lane worked with.
func (t *Transport) remembered(value []byte) error {
	var before admin.Info
	if err := json.Unmarshal(value, &before); err != nil {
		return pipeline.Broken(fmt.Errorf("kafka: what the state topic says of the topics is damaged: %w", err))
	}
	return pipeline.Broken(admin.CheckKnown(before, t.known()))
}

// remember puts into b what the topics are, for the next owner.
func (n *tenure) remember(b *batch) error {
	v, err := json.Marshal(n.t.known())
	if err != nil {
		return err
	}
	b.own[changelog.Key(changelog.KindTopics)] = v
	return nil
}

// restoring notes the restoration of a lane, nil when it ended.
func (t *Transport) restoring(lane int, r *restoration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r == nil {
		delete(t.restores, lane)
	} else {
		t.restores[lane] = r
	}
}
