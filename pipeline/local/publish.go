package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

// laneOf returns the lane of a key.
func (t *Transport) laneOf(key string) int { return laneOf(key, t.lanes) }

// laneOf returns the lane of a key if there are lanes of them. It is a part of the store's
// format.
func laneOf(key string, lanes int) int { return int(xxhash.Sum64String(key) % uint64(lanes)) }

// output is a message with the lane that it goes to.
type output struct {
	lane   *laneLog
	record store.Record
	// offset is set when a stored message is written.
	offset uint64
}

// isStored reports whether o is stored.
func (o output) isStored() bool { return !o.lane.topic.volatile }

// outputs makes outputs of messages.
type outputs struct{ t *Transport }

var _ engine.Outputs[output] = outputs{}

func (p outputs) Lanes() int { return p.t.lanes }

func (p outputs) Output(m flow.Message) output {
	return p.OutputTo(m, p.t.laneOf(cmp.Or(m.Key, m.ID)))
}

func (p outputs) OutputTo(m flow.Message, lane int) output {
	m.Header = maps.Clone(m.Header)
	m.Time = m.Time.Round(0).UTC() // as a message that is read back from the log has it
	r := store.Record{ID: m.ID, Payload: m.Body}
	if !p.t.topic(m.Topic).declared.Ephemeral {
		m = m.WithBody()
		r.Payload = m.Body
	}
	r.Message = &m
	return p.newOutput(m.Topic, lane, r)
}

// Logged reports whether a group reads the log of topic.
func (p outputs) Logged(topic string) bool { return p.t.topic(topic).isRead() }

// Fits returns nil: the store takes values of any size.
func (outputs) Fits(*engine.Effects[output]) error { return nil }

// newOutput returns r as an output to a lane of a topic.
func (p outputs) newOutput(topic string, lane int, r store.Record) output {
	r.Time = p.t.cfg.Now()
	return output{lane: p.t.topic(topic).lanes[lane], record: r}
}

// Publishes reports whether a group reads the log of topic.
func (t *Transport) Publishes(topic string) bool { return t.topic(topic).isRead() }

// Publish publishes all of ms, or none, and returns once they are durable (but see
// Topic.Ephemeral). It blocks while one of their lanes is full or the disk has too little room
// (see Config.MinFree), until ctx is done or the Transport is closed. If ctx carries a
// transaction of this Transport, ms are published with its commit.
func (t *Transport) Publish(ctx context.Context, ms ...flow.Message) error {
	return t.publish(ctx, true, ms)
}

func (t *Transport) publish(ctx context.Context, sync bool, ms []flow.Message) error {
	out := make([]output, len(ms))
	for i, m := range ms {
		if !t.topic(m.Topic).declared.HasLog() {
			return fmt.Errorf("local: messages of topic %s are emitted by handlers alone", m.Topic)
		}
		out[i] = outputs{t}.Output(m)
	}
	return t.joinOrPublish(ctx, sync, out)
}

// joinOrPublish adds out to the transaction of ctx, or publishes it if there is none.
func (t *Transport) joinOrPublish(ctx context.Context, sync bool, out []output) error {
	if len(out) == 0 {
		return nil
	}
	if joined, err := engine.Join(ctx, outputs{t}, out); joined {
		return err
	}
	if t.closed() {
		return ErrClosed
	}
	if err := t.room.Wait(ctx, t.ctx.Done(), ErrClosed); err != nil {
		return err
	}
	wait, err := t.applyPublished(ctx, sync, out)
	if err != nil {
		return err
	}
	if wait != nil {
		wait()
	}
	t.applyRetention(out)
	return nil
}

// applyPublished makes out visible. It is durable when wait returns; a nil wait says that it need not be.
func (t *Transport) applyPublished(ctx context.Context, sync bool, out []output) (wait func(), err error) {
	lanes := lanesInLockOrder(out)
	err = t.lockWithRoom(lanes, func(l *laneLog) bool { return !l.isFull(t.cfg.Bound) }, ctx.Done(), t.ctx.Done())
	if err != nil {
		if t.closed() {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("publishing into a full lane: %w", context.Cause(ctx))
	}
	defer unlockLanes(lanes)
	var synced func()
	if slices.ContainsFunc(out, output.isStored) {
		if synced, err = t.writeOutputs(sync, out, func(*store.Batch) {}); err != nil {
			return nil, err
		}
	}
	if synced == nil {
		t.pushOutputs(out)
		return nil, nil
	}
	for _, o := range out {
		if o.isStored() {
			o.lane.unsynced = append(o.lane.unsynced, o.offset)
		}
	}
	t.pushOutputs(out)
	return func() {
		synced()
		for _, o := range out {
			if o.isStored() {
				o.lane.markDurable(o.offset)
			}
		}
	}, nil
}

// Unsynced returns a publisher like t that does not wait for the disk, for messages that a
// crash may lose. Messages of both stay in order.
func (t *Transport) Unsynced() flow.Publisher { return unsynced{t} }

type unsynced struct{ t *Transport }

func (u unsynced) Publish(ctx context.Context, ms ...flow.Message) error {
	return u.t.publish(ctx, false, ms)
}

// Publisher returns a Watermill publisher. A message whose context carries a transaction of
// this Transport is published with its commit. Others are published at once and durably, those
// of one call together. Close closes only this publisher.
func (t *Transport) Publisher() message.Publisher {
	return engine.NewPublisher(func(topic string, msgs []*message.Message) error {
		var out []output
		for _, m := range msgs {
			key := cmp.Or(m.Metadata[flow.HeaderKey], m.UUID)
			out = append(out, outputs{t}.newOutput(topic, t.laneOf(key), store.Record{ID: m.UUID, Meta: maps.Clone(m.Metadata), Payload: m.Payload}))
		}
		return t.joinOrPublish(msgs[0].Context(), true, out)
	}, ErrClosed)
}

var (
	_ flow.Publisher = (*Transport)(nil)
	_ flow.Publisher = unsynced{}
)

// Poster returns a Poster to the handler of a group and topic. Posted messages are in no log. A
// limited number of them waits in each lane until the group subscribes.
func (t *Transport) Poster(group, topic string) flow.Poster {
	return engine.Poster{Topic: topic, Over: t.ctx.Done(), Closed: ErrClosed, Inbox: func(key string) (*engine.Inbox, error) {
		if t.closed() {
			return nil, ErrClosed
		}
		c, err := t.consumer(group, t.topic(topic))
		if err != nil {
			return nil, err
		}
		t.activity.Add(1)
		return &c.cursors[t.laneOf(key)].inbox, nil
	}}
}
