package vokter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// commandBatch publishes commands together. They are durable after finish, which waits for the disk once: a crash before
// that loses the last of them, and who sends a list again sends all of them again.
type commandBatch struct {
	*Router
	messages []flow.Message
	// each gets every decision with the page of its command. Nil where nobody waits for decisions.
	each func(page string, d flow.Decision) error
	// undecided are the pages of the commands without a decision, by their IDs.
	undecided map[string]string
	decided   chan flow.Decision
}

const (
	// batchSize is how many commands are published together.
	batchSize = 256
	// maxUndecided is how many commands of a batch wait for their decisions at once.
	maxUndecided = 16 * batchSize
)

// newBatch returns a batch without commands. The caller closes it.
func (r *Router) newBatch(each func(page string, d flow.Decision) error) *commandBatch {
	b := &commandBatch{Router: r, each: each}
	if each != nil {
		b.undecided, b.decided = make(map[string]string), make(chan flow.Decision, maxUndecided)
	}
	return b
}

// close forgets the commands without a decision.
func (b *commandBatch) close() {
	for id := range b.undecided {
		b.decisions.forget(id)
	}
}

// add adds a command for the page of url. It publishes those before it where the batch is full.
func (b *commandBatch) add(ctx context.Context, url, typ string, body any) error {
	m, err := newCommand(url, typ, body, b.cfg.Now())
	if err != nil {
		return err
	}
	full := len(b.undecided) == maxUndecided
	if full || len(b.messages) == batchSize { // finish has at least one left
		if err := b.publish(ctx, b.transport.Unsynced()); err != nil {
			return err
		}
	}
	if full {
		if err := b.await(ctx); err != nil {
			return err
		}
	}
	if b.each != nil && typ != flow.TypeCheckNow {
		b.undecided[m.ID] = m.Key
		b.decisions.expect(m.ID, b.decided)
	}
	b.messages = append(b.messages, m)
	return nil
}

// finish publishes the rest and waits for all decisions.
func (b *commandBatch) finish(ctx context.Context) error {
	if len(b.messages) > 0 {
		if err := b.publish(ctx, b.transport); err != nil {
			return err
		}
	}
	for len(b.undecided) > 0 {
		if err := b.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publish sends the commands that were added to p.
func (b *commandBatch) publish(ctx context.Context, p flow.Publisher) error {
	if b.each != nil {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, commandTimeout, flow.ErrBusy)
		defer cancel()
	}
	err := p.Publish(ctx, b.messages...)
	b.messages = b.messages[:0]
	switch {
	case err == nil || b.each == nil:
		return err
	case ctx.Err() != nil:
		return b.whyUndecided(context.Cause(ctx))
	}
	return b.stoppedIfClosing(err)
}

// await waits for one decision.
func (b *commandBatch) await(ctx context.Context) error {
	timer := time.NewTimer(commandTimeout)
	defer timer.Stop()
	select {
	case d := <-b.decided:
		page := b.undecided[d.Command]
		delete(b.undecided, d.Command)
		return b.each(page, d)
	case <-b.ended:
		return b.Ready()
	case <-ctx.Done():
		return b.whyUndecided(context.Cause(ctx))
	case <-timer.C:
		return b.whyUndecided(flow.ErrBusy)
	}
}

// whyUndecided returns err. If err says that a command was not decided in time, it adds what the transport lacks.
func (r *Router) whyUndecided(err error) error {
	if why := r.transport.Ready(); why != nil && errors.Is(err, flow.ErrBusy) {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return err
}
