package local

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
)

// errRevoked says that a commit was abandoned because the subscription ends.
var errRevoked = errors.New("local: the subscription ends")

// run serves one lane for one subscription, until revoke is closed.
type run struct {
	cur    *cursor
	sub    *subscription
	prev   <-chan struct{} // closed when the lane's previous run has ended
	first  bool            // of the group's first subscription
	revoke chan struct{}
	done   chan struct{}
}

func (r *run) loop() {
	defer r.sub.runs.Done()
	defer close(r.done)
	if r.prev != nil {
		<-r.prev
	}
	if r.first {
		r.cur.started = false
	}
	for pause := mill.FirstPause; ; {
		w, ok, err := r.next()
		switch {
		case err != nil:
			r.cur.c.t.log.Error("reading a lane failed", "group", r.cur.c.group, "topic", r.cur.lane.topic.name,
				"lane", r.cur.lane.index, "error", err)
			r.cur.c.t.broken(err)
			if !r.sleep(&pause) {
				return
			}
		case ok:
			if !r.deliver(w) {
				return
			}
			pause = mill.FirstPause
		default:
			select {
			case <-r.revoke:
				return
			case <-r.cur.signal:
			}
		}
	}
}

// next returns the next piece of work. It returns false if there is none, the lane is revoked
// or Close has begun.
func (r *run) next() (work, bool, error) {
	select {
	case <-r.revoke:
		return work{}, false, nil
	case <-r.cur.c.t.ctx.Done():
		return work{}, false, nil
	default:
	}
	r.cur.begin()
	return r.cur.take()
}

// deliver delivers w, again after each failure, until it is committed. It returns false if the
// lane was revoked before; w is then redelivered.
func (r *run) deliver(w work) bool {
	for pause := mill.FirstPause; ; {
		tx := newTx(r.cur, w)
		ctx, cancel := context.WithCancel(r.sub.ctx)
		done, revoked := r.try(r.message(ctx, tx), tx)
		tx.close()
		cancel()
		if done || revoked {
			return done
		}
		if !r.sleep(&pause) {
			return false
		}
	}
}

// try delivers msg once, waits for its acknowledgement and commits.
func (r *run) try(msg *message.Message, tx *tx) (done, revoked bool) {
	select {
	case r.sub.out <- msg:
	case <-r.revoke:
		return false, true
	}
	select {
	case <-msg.Acked():
	case <-msg.Nacked():
		return false, false
	case <-r.sub.abandoned:
		return false, true
	}
	err := r.cur.c.t.commit(tx, r.revoke)
	switch {
	case err == nil:
		r.cur.c.t.handled(tx)
		return true, false
	case errors.Is(err, errRevoked):
		return false, true
	default:
		r.cur.c.t.log.Error("a commit failed", "group", r.cur.c.group, "topic", r.cur.lane.topic.name,
			"lane", r.cur.lane.index, "error", err)
		r.cur.c.t.broken(err)
		return false, false
	}
}

// sleep waits for *pause and doubles it. It returns false if the lane is revoked.
func (r *run) sleep(pause *time.Duration) bool {
	limit := r.cur.c.t.cfg.MaxPause
	timer := time.NewTimer(min(*pause, limit))
	defer timer.Stop()
	*pause = min(*pause*2, limit)
	select {
	case <-timer.C:
		return true
	case <-r.revoke:
		return false
	}
}

// message returns the Watermill message of x. Its context carries the transaction. The handler
// may change the message. It has no metadata if the transport is bare.
func (r *run) message(ctx context.Context, x *tx) *message.Message {
	ctx = flow.WithTx(ctx, x)
	bare, p, rec := x.t.bare.Load(), x.w.message, x.w.entry.Record
	if p == nil {
		m := message.NewMessageWithContext(ctx, rec.ID, rec.Payload)
		if !bare {
			maps.Copy(m.Metadata, rec.Meta)
		}
		return m
	}
	m := message.NewMessageWithContext(ctx, p.ID, p.Body)
	if !bare {
		m.Metadata = p.Metadata()
	}
	return m
}
