package vokter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/vokter/vokter/internal/inflight"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// maxDeaths is how many processes may die while they handle a message. After that it goes to the
// dead letters.
const maxDeaths = 3

// Stopped is a message that a Router could neither handle nor move to the dead letters, so that it
// stopped. Reason says why. A large body is left out.
type Stopped struct {
	flow.DeadLetter
	// Position is the position of the message in its topic. It is empty for a wake.
	Position string `json:"position,omitempty"`
	// Skip says that the next start moves the message to the dead letters.
	Skip bool `json:"skip,omitempty"`
}

// key returns the key under which hazards keep the message.
func (s Stopped) key() inflight.Key {
	return keyOf(s.Group, flow.Message{
		Topic: s.Topic, Position: s.Position, Key: s.Headers[flow.HeaderKey], Type: s.Type(),
	})
}

// keyOf returns the key of m for group. It is the zero Key for messages that are not
// redelivered after a crash.
func keyOf(group string, m flow.Message) inflight.Key {
	switch {
	case m.Position != "":
		return inflight.KeyOf(group, m.Position)
	case m.Type == flow.TypeWake:
		return inflight.KeyOf(group, m.Topic, m.Key, m.Type)
	}
	return inflight.Key{}
}

// StoppedBy returns the message that made a Router with the data directory dir stop, or nil. Name
// is the Router's Config.Name where several share a Store. It works while a Router runs.
func StoppedBy(dir, name string) (*Stopped, error) {
	b, err := os.ReadFile(fileOf(dir, name, "stopped.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(Stopped)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it", fileOf(dir, name, "stopped.json"), err)
	}
	return s, nil
}

// SkipStopped makes the next Router with the data directory dir move s, which StoppedBy returned, to
// the dead letters instead of handling it.
func SkipStopped(dir, name string, s *Stopped) error {
	skipped := *s
	skipped.Skip = true
	return skipped.write(fileOf(dir, name, "stopped.json"))
}

// write replaces the file at path atomically.
func (s *Stopped) write(path string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// fileOf returns the path of a file beside the store in dir, and an empty string if dir is
// empty.
func fileOf(dir, name, file string) string {
	if dir == "" {
		return ""
	}
	if name != "" {
		file += "-" + url.PathEscape(name)
	}
	return filepath.Join(dir, file)
}

// hazards keeps track of messages that are not safe to handle: those during which processes
// crashed, and the one that made the last Router stop.
type hazards struct {
	log *slog.Logger
	// deaths counts the crashes of each message. It is nil where they are not counted.
	deaths *inflight.Log
	// path is the file for the message that stops this Router. Empty: there is none.
	path string
	once sync.Once
	// before is the message that made an earlier Router stop, or nil. key is its key.
	before *Stopped
	key    inflight.Key
}

// openHazards reads what earlier processes left beside the store. Where that fails it logs a
// warning, and messages are handled without it.
func (r *Router) openHazards() *hazards {
	dir, name := r.cfg.Dir, ""
	if r.cfg.Store != nil {
		dir, name = r.cfg.Store.db.Dir(), r.cfg.Name
	}
	h := &hazards{log: r.cfg.Logger, path: fileOf(dir, name, "stopped.json")}
	if dir == "" {
		return h
	}
	warn := func(err error) {
		h.log.Warn("the record of messages that earlier processes could not handle cannot be read", "error", err)
	}
	var err error
	if r.cfg.Mode == ModeAll { // other modes handle few messages
		if h.deaths, err = inflight.Open(fileOf(dir, name, "inflight"), h.log); err != nil {
			warn(err)
		}
	}
	if h.before, err = StoppedBy(dir, name); err != nil {
		warn(err)
	} else if h.before != nil {
		h.key = h.before.key()
	}
	return h
}

func (h *hazards) close() {
	if err := h.deaths.Close(); err != nil {
		h.log.Warn("the record of messages in progress could not be closed", "error", err)
	}
}

// stopped writes the message that stops the Router to the file, and returns what the user can
// do about it.
func (h *hazards) stopped(s *Stopped) (remedy string) {
	remedy = "nothing is lost: it is handled again at the next start"
	if h.path == "" {
		return remedy
	}
	var err error
	h.once.Do(func() { err = s.write(h.path) }) // the first one stops the Router; others need not be kept
	if err != nil {
		h.log.Warn("the message that stops the process cannot be stored; vokter-stream skip will not find it", "error", err)
		return remedy
	}
	return remedy + "; vokter-stream skip shows it, and takes it out of the way"
}

// guarding fails messages that crashed maxDeaths processes or that are to be skipped, so that
// they go to the dead letters. It records which messages are being handled.
func (h *hazards) guarding(group string) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			k := keyOf(group, m)
			if h.before != nil && k == h.key {
				if h.before.Skip {
					return failure.Permanent(fmt.Errorf("it was skipped; before that it stopped the process: %s", h.before.Reason))
				}
				tx.OnCommit(h.passed)
			}
			switch n := h.deaths.Deaths(k); {
			case n >= maxDeaths:
				return failure.Permanent(fmt.Errorf("the process died %d times while %s handled this message", n, group))
			case n > 1:
				h.log.Warn("earlier processes died while they handled this message; it is handled alone", "group", group, "topic", m.Topic,
					"type", quoted(m.Type), "page", quoted(pageurl.Redacted(cmp.Or(m.Subject, m.Key))), "deaths", n)
			}
			return h.deaths.Handle(ctx, k, func() error { return next.Process(ctx, tx, m) })
		})
	}
}

// forgetting deletes the record of a message once the message is in the dead letters.
func (h *hazards) forgetting(group string) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			err := next.Process(ctx, tx, m)
			if err != nil || h.before == nil && !h.deaths.Careful() {
				return err
			}
			k := keyOf(group, m)
			if h.deaths.Deaths(k) > 0 {
				tx.OnCommit(func() { h.deaths.Forget(k) })
			}
			if h.before != nil && h.before.Skip && k == h.key {
				tx.OnCommit(h.passed)
			}
			return nil
		})
	}
}

// passed deletes the file of the message that made an earlier Router stop.
func (h *hazards) passed() {
	if err := os.Remove(h.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("the message that stopped an earlier process cannot be forgotten", "error", err)
	}
}
