package manage

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

const (
	mediaJSON = "application/json"
	mediaTar  = "application/x-tar"
)

// writer writes answers that may take longer than the limits of the server allow, as long
// as their reader takes something within stall.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	began   bool
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w)}
}

// patient lifts the server's limit for reading a request, which has been read: it would
// cancel work that takes longer.
func (w *writer) patient() error { return supported(w.control.SetReadDeadline(time.Time{})) }

// begin sends the head of an answer of the given media type.
func (w *writer) begin(status int, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.began = true
	w.WriteHeader(status)
}

// Write sends b, behind the head of the answer.
func (w *writer) Write(b []byte) (int, error) {
	if err := supported(w.control.SetWriteDeadline(time.Now().Add(stall))); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// reply sends v as JSON.
func (w *writer) reply(v any) error { return w.send(http.StatusOK, v) }

// send sends v as JSON under status.
func (w *writer) send(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.begin(status, mediaJSON)
	_, err = w.Write(append(b, '\n'))
	return err
}

// tarWriter begins its answer with the first byte, so that what fails before is told.
type tarWriter struct{ *writer }

func (w *tarWriter) Write(b []byte) (int, error) {
	if !w.began {
		w.begin(http.StatusOK, mediaTar)
	}
	return w.writer.Write(b)
}

// supported drops the error of a connection that has no deadlines, as in tests.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
