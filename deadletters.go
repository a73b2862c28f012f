package vokter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// DeadLetters returns what was given up and f selects, the oldest first. Of messages
// that could not be handled the bodies are left out, and what may be passwords.
func (r *Router) DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error) {
	if err := r.readable(ctx); err != nil {
		return nil, err
	}
	var found []flow.DeadLetter
	err := r.letters(ctx, f, func(_ string, d flow.DeadLetter) {
		found = append(found, d.Listed())
	})
	slices.SortStableFunc(found, func(a, b flow.DeadLetter) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(receiverOf(a), receiverOf(b)))
	})
	return found, r.unlessClosing(err)
}

// receiverOf is the ID of the receiver of d, if it has one.
func receiverOf(d flow.DeadLetter) string {
	if d.Addressed == nil {
		return ""
	}
	return d.Addressed.Receiver.ID()
}

// Replay brings the notifications that f selects back into delivery, and returns how many
// there are. They keep their IDs, and are delivered whatever is remembered of these: a
// receiver may get what it has. When it returns the command is durable. An expired receiver
// is open again with the first success.
func (r *Router) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	if err := r.readable(ctx); err != nil {
		return 0, err
	}
	if err := r.transport.Ready(); err != nil {
		return 0, err
	}
	f.Messages = false // nobody was to receive them
	body, err := json.Marshal(flow.ReplayCommand{Filter: f})
	if err != nil {
		return 0, err
	}
	n := 0
	var commands []flow.Message
	err = r.letters(ctx, f, func(key string, _ flow.DeadLetter) {
		n++
		if len(commands) == 0 || commands[len(commands)-1].Key != key {
			commands = append(commands, flow.Message{
				ID: rand.Text(), Topic: flow.TopicDead, Key: key, Type: flow.TypeReplay, Time: r.cfg.Now(),
				Header: map[string]string{"content-type": "application/json"}, Body: body,
			})
		}
	})
	if err == nil && n > 0 {
		err = r.transport.Publish(ctx, commands...)
	}
	if err != nil {
		return 0, r.unlessClosing(err)
	}
	return n, nil
}

// letters calls found with the dead letters that f selects, and the key that keeps each.
func (r *Router) letters(ctx context.Context, f flow.DeadFilter, found func(key string, d flow.DeadLetter)) error {
	for key, st := range r.transport.States(flow.GroupDead) {
		for l, err := range sinks.Letters(st) {
			if err != nil {
				return err
			}
			if f.Selects(l.DeadLetter) {
				found(key, l.DeadLetter)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Backup writes a consistent copy of the Router's store to w, as UnpackBackup reads it. The
// Router goes on meanwhile.
func (r *Router) Backup(ctx context.Context, w io.Writer) error {
	if err := r.readable(ctx); err != nil {
		return err
	}
	return r.unlessClosing(r.transport.BackupTo(w))
}

// readable waits until the store can be read, and says why it cannot.
func (r *Router) readable(ctx context.Context) error {
	select {
	case <-r.running:
	case <-r.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-r.ended:
		return r.Ready()
	default:
		return nil
	}
}
