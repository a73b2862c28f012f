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

// maxCrashes is how many processes may die while they handle a message. After that it goes to the
// dead letters.
const maxCrashes = 3

// Stopped is a message that a Router could neither handle nor move to the dead letters, so that it
// stopped. Reason says why. A large body is left out.
type Stopped struct {
	flow.DeadLetter
	// Position is the position of the message in its topic. It is empty for a wake, and for a message of a chain.
	Position string `json:"position,omitempty"`
	// Skip says that the next start moves the message to the dead letters.
	Skip bool `json:"skip,omitempty"`
}

// inflightKey returns the key under which the record of poison messages has the message.
func (s Stopped) inflightKey() inflight.Key {
	return inflightKey(s.Group, flow.Message{
		ID: s.Headers["ce_id"], Topic: s.Topic, Position: s.Position, Key: s.Headers[flow.HeaderKey], Type: s.Type(),
	})
}

// inflightKey returns the key of m for group. It is the zero Key for messages that are not
// redelivered after a crash.
func inflightKey(group string, m flow.Message) inflight.Key {
	switch {
	case m.Position != "":
		return inflight.KeyOf(group, m.Position)
	case m.Type == flow.TypeWake:
		return inflight.KeyOf(group, m.Topic, m.Key, m.Type)
	case chainedTopics[m.Topic]:
		return inflight.KeyOf(group, m.Topic, m.ID)
	}
	return inflight.Key{}
}

// chainedTopics are those whose messages come again with the one that they follow from.
var chainedTopics = func() map[string]bool {
	chained := make(map[string]bool)
	for name, t := range Topology() {
		chained[name] = t.Chained != ""
	}
	return chained
}()

// StoppedBy returns the message that made a Router with the data directory dir stop, or nil. Name
// is the Router's Config.Name where several share a Store. It works while a Router runs.
func StoppedBy(dir, name string) (*Stopped, error) {
	b, err := os.ReadFile(pathBesideStore(dir, name, "stopped.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(Stopped)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; remove it", pathBesideStore(dir, name, "stopped.json"), err)
	}
	return s, nil
}

// SkipStopped makes the next Router with the data directory dir move s, which StoppedBy returned, to
// the dead letters instead of handling it.
func SkipStopped(dir, name string, s *Stopped) error {
	skipped := *s
	skipped.Skip = true
	return skipped.write(pathBesideStore(dir, name, "stopped.json"))
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

// pathBesideStore returns the path of a file beside the store in dir, and an empty string if dir is
// empty.
func pathBesideStore(dir, name, file string) string {
	if dir == "" {
		return ""
	}
	if name != "" {
		file += "-" + url.PathEscape(name)
	}
	return filepath.Join(dir, file)
}

// poisonMessages keeps a record of messages that are not safe to handle: those during which processes
// crashed, and the one that made the last Router stop.
type poisonMessages struct {
	log *slog.Logger
	// crashes counts the crashes of each message. It is nil where they are not counted.
	crashes *inflight.Log
	// stoppedPath is the file for the message that stops this Router. Empty: there is none.
	stoppedPath string
	writeOnce   sync.Once
	// stoppedBefore is the message that made an earlier Router stop, or nil. stoppedKey is its key.
	stoppedBefore *Stopped
	stoppedKey    inflight.Key
}

// openPoisonMessages reads what earlier processes left beside the store. Where that fails it logs a
// warning, and messages are handled without it.
func (r *Router) openPoisonMessages() *poisonMessages {
	dir, name := r.cfg.dataDirectory(), ""
	if r.cfg.Store != nil {
		name = r.cfg.Name
	}
	h := &poisonMessages{log: r.cfg.Logger, stoppedPath: pathBesideStore(dir, name, "stopped.json")}
	if dir == "" {
		return h
	}
	warn := func(err error) {
		h.log.Warn("the record of messages that earlier processes could not handle cannot be read", "error", err)
	}
	var err error
	if r.cfg.Mode == ModeAll { // other modes handle few messages
		if h.crashes, err = inflight.Open(pathBesideStore(dir, name, "inflight"), h.log); err != nil {
			warn(err)
		}
	}
	if h.stoppedBefore, err = StoppedBy(dir, name); err != nil {
		warn(err)
	} else if h.stoppedBefore != nil {
		h.stoppedKey = h.stoppedBefore.inflightKey()
	}
	return h
}

func (h *poisonMessages) close() {
	if err := h.crashes.Close(); err != nil {
		h.log.Warn("the record of messages in progress could not be closed", "error", err)
	}
}

// saveStopped writes the message that stops the Router to the file, and returns what the user can
// do about it.
func (h *poisonMessages) saveStopped(s *Stopped) (remedy string) {
	remedy = "nothing is lost: it is handled again at the next start"
	if h.stoppedPath == "" {
		return remedy
	}
	var err error
	h.writeOnce.Do(func() { err = s.write(h.stoppedPath) }) // the first one stops the Router; others need not be kept
	if err != nil {
		h.log.Warn("the message that stops the process cannot be stored; vokter-stream skip will not find it", "error", err)
		return remedy
	}
	return remedy + "; vokter-stream skip shows it, and takes it out of the way"
}

// rejectPoison fails messages that crashed maxCrashes processes or that are to be skipped, so that
// they go to the dead letters. It records which messages are being handled.
func (h *poisonMessages) rejectPoison(group string) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			k := inflightKey(group, m)
			if h.stoppedBefore != nil && k == h.stoppedKey {
				if h.stoppedBefore.Skip {
					return failure.Permanent(fmt.Errorf("it was skipped; before that it stopped the process: %s", h.stoppedBefore.Reason))
				}
				tx.OnCommit(h.removeStoppedFile)
			}
			switch n := h.crashes.Deaths(k); {
			case n >= maxCrashes:
				return failure.Permanent(fmt.Errorf("the process died %d times while %s handled this message", n, group))
			case n > 1:
				h.log.Warn("earlier processes died while they handled this message; it is handled alone", "group", group, "topic", m.Topic,
					"type", clippedForLog(m.Type), "page", clippedForLog(pageurl.Redacted(cmp.Or(m.Subject, m.Key))), "deaths", n)
			}
			return h.crashes.Handle(ctx, k, func() error { return next.Process(ctx, tx, m) })
		})
	}
}

// readPage calls read, which reads the page that key names. It returns an error in its place if maxCrashes processes
// died while they read it.
func (h *poisonMessages) readPage(ctx context.Context, key string, read func()) error {
	k := inflight.KeyOf(flow.GroupFetch, key)
	if n := h.crashes.Deaths(k); n >= maxCrashes {
		return fmt.Errorf("the process died %d times while it read this page; it is read again when the page or its settings change", n)
	}
	return h.crashes.Handle(ctx, k, func() error { read(); return nil })
}

// forgetDeadLettered deletes the record of a message once the message is in the dead letters.
func (h *poisonMessages) forgetDeadLettered(group string) flow.Middleware {
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			err := next.Process(ctx, tx, m)
			if err != nil || h.stoppedBefore == nil && !h.crashes.Careful() {
				return err
			}
			k := inflightKey(group, m)
			if h.crashes.Deaths(k) > 0 {
				tx.OnCommit(func() { h.crashes.Forget(k) })
			}
			if h.stoppedBefore != nil && h.stoppedBefore.Skip && k == h.stoppedKey {
				tx.OnCommit(h.removeStoppedFile)
			}
			return nil
		})
	}
}

// removeStoppedFile deletes the file of the message that made an earlier Router stop.
func (h *poisonMessages) removeStoppedFile() {
	if err := os.Remove(h.stoppedPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("the message that stopped an earlier process cannot be forgotten", "error", err)
	}
}
