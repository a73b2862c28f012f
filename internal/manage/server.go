package manage

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Service is a Manager whose API is served, with its state.
type Service interface {
	Manager
	// Ready returns nil while the pipeline works, and otherwise the reason why it does not.
	Ready() error
	// Running is closed when the pipeline has begun to work.
	Running() <-chan struct{}
	// Gauges returns the metrics of the pipeline.
	Gauges() []flow.Gauge
}

// maxBody is the largest body of a request, in bytes.
const maxBody = 64 << 10

// stall is how long a client may read nothing of a response before the response is aborted.
const stall = 30 * time.Second

// Handler returns the API of s below Prefix. p describes the process. Requests must carry token
// as a bearer token; if token is empty, all are refused. Handler also refuses requests that a
// browser sends for another site. On a loopback address it refuses every Host other than a
// loopback address or localhost, because a web site could let its own name point here. Until s
// is running only the route /process works.
func Handler(s Service, p Process, token string) *API {
	a := &api{service: s, copying: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	get := func(path string, h handler) { mux.Handle(Prefix+path, a.answer(http.MethodGet, a.running(h))) }
	post := func(path string, h handler) { mux.Handle(Prefix+path, a.answer(http.MethodPost, a.running(h))) }
	mux.Handle(Prefix+"/process", a.answer(http.MethodGet, func(w *writer, r *http.Request) error {
		if _, err := query(r); err != nil {
			return err
		}
		p := p
		p.Lanes = lanesOf(s.Gauges())
		return w.reply(p)
	}))
	get("/pages", a.pages)
	get("/receivers", a.receivers)
	get("/explain", a.explain)
	get("/versions", a.versions)
	get("/text", a.text)
	get("/diff", a.diff)
	get("/occurrences", a.occurrences)
	get("/dead-letters", a.deadLetters)
	get("/backup", a.backup)
	post("/cancel", a.cancel)
	post("/resume", a.resume)
	post("/replay", a.replay)
	post("/retry", a.retry)
	mux.Handle("/", a.answer("", func(_ *writer, r *http.Request) error {
		return &apiError{http.StatusNotFound, codeNotFound, "there is no " + r.URL.Path}
	}))
	return &API{guarded(authorized(mux, token)), a}
}

// API is the handler of the API.
type API struct {
	http.Handler
	api *api
}

// Close refuses new backups, and waits until the current one has ended and removed its files.
// Close the connections first, so that the current backup fails.
func (a *API) Close() { a.api.closed.Do(func() { a.api.copying <- struct{}{} }) }

type api struct {
	service Service
	// copying holds a token while a backup is sent, and for ever after Close.
	copying chan struct{}
	closed  sync.Once
}

// handler answers a request. If it returns an error after it has written, the response is
// aborted.
type handler func(w *writer, r *http.Request) error

// running returns a handler that calls h once the pipeline works, and fails before: h would
// wait.
func (a *api) running(h handler) handler {
	return func(w *writer, r *http.Request) error {
		select {
		case <-a.service.Running():
			return h(w, r)
		default:
		}
		why := a.service.Ready()
		if why == nil {
			return h(w, r)
		}
		return &apiError{http.StatusServiceUnavailable, codeUnavailable, why.Error()}
	}
}

// answer returns an http.Handler that calls h for requests with method (empty: any) and sends
// its errors as responses.
func (a *api) answer(method string, h handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := newWriter(rw)
		r.Body = http.MaxBytesReader(rw, r.Body, maxBody)
		var err error
		if r.Method == http.MethodGet { // for other methods decode does it after it has read the body
			err = w.patient()
		}
		switch {
		case err != nil:
		case method == "" || r.Method == method:
			err = h(w, r)
		default:
			rw.Header().Set("Allow", method)
			err = &apiError{http.StatusMethodNotAllowed, codeMethod, r.URL.Path + " is asked for with " + method}
		}
		switch {
		case err == nil:
		case w.began:
			panic(http.ErrAbortHandler) // so that the client sees that the response is incomplete
		default:
			e := a.classify(err)
			if e.Code == codeBusy || e.Code == codeUnavailable {
				rw.Header().Set("Retry-After", "5")
			}
			_ = w.send(e.Status, errorBody{failure{e.Code, e.Message}})
		}
	})
}

// classify returns the response for err.
func (a *api) classify(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if refused, ok := errors.AsType[*flow.Refusal](err); ok {
		switch refused.Code {
		case flow.CodeNotFound:
			return &apiError{http.StatusNotFound, codeNotFound, refused.Message}
		case flow.CodeConflict:
			return &apiError{http.StatusConflict, codeConflict, refused.Message}
		}
		return &apiError{http.StatusBadRequest, codeInvalid, refused.Message}
	}
	if _, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return &apiError{http.StatusBadRequest, codeInvalid, err.Error()}
	}
	switch {
	case errors.Is(err, inspect.ErrElsewhere):
		return &apiError{http.StatusMisdirectedRequest, codeElsewhere, err.Error()}
	case errors.Is(err, vokter.ErrBusy):
		return &apiError{http.StatusServiceUnavailable, codeBusy, err.Error()}
	case a.service.Ready() != nil:
		return &apiError{http.StatusServiceUnavailable, codeUnavailable, err.Error()}
	}
	return &apiError{http.StatusInternalServerError, codeInternal, err.Error()}
}

const (
	mediaJSON = "application/json"
	mediaTar  = "application/x-tar"
)

// writer writes a response that may take longer than the timeouts of the server, as long as the
// client reads something within stall.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	began   bool
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w)}
}

// patient removes the server's read timeout. Call it when the request has been read, because
// the timeout would cancel longer work.
func (w *writer) patient() error { return supported(w.control.SetReadDeadline(time.Time{})) }

// begin sends the header of a response of the given media type.
func (w *writer) begin(status int, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.began = true
	w.WriteHeader(status)
}

// Write sends b as a part of the body.
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

// tarWriter sends the header of its response with the first byte, so that an error before that
// can still be sent.
type tarWriter struct{ *writer }

func (w *tarWriter) Write(b []byte) (int, error) {
	if !w.began {
		w.begin(http.StatusOK, mediaTar)
	}
	return w.writer.Write(b)
}

// supported returns nil if err says that the connection has no deadlines, as in tests.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
