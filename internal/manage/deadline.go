package manage

import (
	"errors"
	"net/http"
	"time"
)

// writeStallTimeout is how long a client of the API may read nothing of a response before the response is aborted.
const writeStallTimeout = 30 * time.Second

// DeadlineWriter writes a response that may take longer than the timeouts of the server, as long as the client reads
// something within the time that it is given.
type DeadlineWriter struct {
	http.ResponseWriter
	control    *http.ResponseController
	stall      time.Duration
	headerSent bool
}

// NewDeadlineWriter returns a DeadlineWriter over w, of which the client must read something within stall.
func NewDeadlineWriter(w http.ResponseWriter, stall time.Duration) *DeadlineWriter {
	return &DeadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
}

// EndReadTimeout removes the read timeout of the server, which would end the request while it is answered.
func (w *DeadlineWriter) EndReadTimeout() error {
	return ignoreUnsupported(w.control.SetReadDeadline(time.Time{}))
}

// SetReadTimeout replaces the read timeout of the server.
func (w *DeadlineWriter) SetReadTimeout(within time.Duration) error {
	return ignoreUnsupported(w.control.SetReadDeadline(time.Now().Add(within)))
}

// Unwrap is for http.ResponseController.
func (w *DeadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends the header.
func (w *DeadlineWriter) WriteHeader(status int) {
	w.headerSent = true
	_ = w.extend() // what is written next fails, too
	w.ResponseWriter.WriteHeader(status)
}

// Write sends b as a part of the body.
func (w *DeadlineWriter) Write(b []byte) (int, error) {
	w.headerSent = true
	if err := w.extend(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

func (w *DeadlineWriter) extend() error {
	return ignoreUnsupported(w.control.SetWriteDeadline(time.Now().Add(w.stall)))
}

// ignoreUnsupported returns err, or nil if it says that the connection has no deadlines, as in tests.
func ignoreUnsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
