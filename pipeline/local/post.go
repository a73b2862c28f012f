package local

import (
	"context"
	"fmt"

	"github.com/vokter/vokter/pipeline/flow"
)

// Poster returns a way to hand messages to the handler of a group and topic, outside any
// log. They wait, a bounded number in each lane, until the group subscribes.
func (t *Transport) Poster(group, topic string) flow.Poster {
	return &poster{t, group, topic}
}

type poster struct {
	t            *Transport
	group, topic string
}

var _ flow.Poster = (*poster)(nil)

func (p *poster) Post(ctx context.Context, m flow.Message) error {
	if p.t.closed() {
		return ErrClosed
	}
	c, err := p.t.consumer(p.group, p.t.topic(p.topic))
	if err != nil {
		return err
	}
	m.Topic, m.Time = p.topic, m.Time.Round(0).UTC()
	key := m.Key
	if key == "" {
		key = m.ID
	}
	cur := c.cursors[p.t.laneOf(key)]
	cur.posted.Add(1)
	p.t.activity.Add(1)
	select {
	case cur.inbox <- m:
		cur.notify()
		return nil
	case <-ctx.Done():
		cur.posted.Add(-1)
		return fmt.Errorf("posting into a full inbox: %w", context.Cause(ctx))
	case <-p.t.ctx.Done():
		cur.posted.Add(-1)
		return ErrClosed
	}
}
