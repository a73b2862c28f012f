package sinks

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// note is what an attempt noted.
type note struct {
	Text string    `json:"text"`
	Time time.Time `json:"time"`
}

// said is what a sink said in an attempt beside its error.
type said struct {
	// Note is what it noted, nil for nothing; Degraded why it was not delivered as wanted.
	Note     *string `json:"note,omitempty"`
	Degraded string  `json:"degraded,omitempty"`
}

// handle is the pipeline.Attempt of one notification in an attempt.
type handle struct {
	document string

	mu   sync.Mutex
	note string
	said said
}

var _ pipeline.Attempt = (*handle)(nil)

func (h *handle) Document() string { return h.document }

func (h *handle) Note() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.note
}

func (h *handle) SetNote(text string) {
	if len(text) > pipeline.MaxNote {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note, h.said.Note = text, &text
}

func (h *handle) Degraded(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Degraded = oneLine(reason)
}

// end returns what was said.
func (h *handle) end() said {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

// noteOf returns the note of document, if it is not older than since.
func (s state) noteOf(document string, since time.Time) (string, error) {
	var n note
	if ok, err := s.read(nameNote+document, &n); err != nil || !ok || n.Time.Before(since) {
		return "", err
	}
	return n.Text, nil
}

// setNote keeps text as the note of document; an empty one is none.
func (s state) setNote(document, text string, at time.Time) error {
	if text == "" {
		return s.Delete(nameNote + document)
	}
	return s.write(nameNote+document, note{text, at})
}

// pruneNotes forgets the notes from before before, some at a time. It says whether there
// are others.
func (s state) pruneNotes(before time.Time) (left bool, err error) {
	var old []string
	for name, v := range s.Scan(nameNote) {
		if v.Err != nil {
			return left, v.Err
		}
		var n note
		if err := decode(name, v.Bytes, &n); err != nil {
			return left, err
		}
		if !n.Time.Before(before) || len(old) == pruneBatch {
			left = true
			continue
		}
		old = append(old, name)
	}
	for _, name := range old {
		err = errors.Join(err, s.Delete(name))
	}
	return left, err
}

// keepNote keeps what the attempt in flight has noted with a pending notification.
func (w *work) keepNote(seq uint64, text *string) error {
	if text == nil {
		return nil
	}
	p, err := w.st.pending(seq)
	if err != nil {
		return err
	}
	w.q.remember(w.now, w.policy.withDefaults())
	return w.st.setNote(p.Addressed.Document, strings.ToValidUTF8(*text, ""), w.now)
}
