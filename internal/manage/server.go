package manage

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// Service is what a Server serves.
type Service interface {
	Manager
	// Ready returns nil while the pipeline is at work, and otherwise why it is not.
	Ready() error
	// Running is closed once the pipeline began to work.
	Running() <-chan struct{}
	// Gauges returns how the pipeline does.
	Gauges() []flow.Gauge
}

// maxBody bounds the body of a request in bytes.
const maxBody = 64 << 10

// stall is how long a reader of an answer may take nothing before it is given up.
const stall = 30 * time.Second

// Handler returns the API of s below Prefix. p is what it says of its process. It answers
// requests that carry token as a bearer token, and nobody where token is empty. It refuses
// what a browser sends for another site, and on a loopback address every Host but a loopback
// address or localhost, since any web page could have its own name point here. Until s is
// running it says only which process this is.
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

// API answers requests.
type API struct {
	http.Handler
	api *api
}

// Close refuses new backups, and waits until the one that is being sent has ended and
// removed what it made. It breaks off once its connection is closed, which comes first.
func (a *API) Close() { a.api.closed.Do(func() { a.api.copying <- struct{}{} }) }

type api struct {
	service Service
	// copying is full while a backup is sent, and for ever once the API is closed.
	copying chan struct{}
	closed  sync.Once
}

// handler answers a request. It returns an error only where it has written nothing, or
// where the answer has to break off.
type handler func(w *writer, r *http.Request) error

// running makes h answer only once the pipeline began to work: before that it would wait.
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

// answer makes h an http.Handler for method (empty: any), which turns its errors into answers.
func (a *api) answer(method string, h handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := newWriter(rw)
		r.Body = http.MaxBytesReader(rw, r.Body, maxBody)
		var err error
		if r.Method == http.MethodGet { // others once their body was read
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
			panic(http.ErrAbortHandler) // the client must see that the answer is cut
		default:
			e := a.classify(err)
			if e.Code == codeBusy || e.Code == codeUnavailable {
				rw.Header().Set("Retry-After", "5")
			}
			_ = w.send(e.Status, errorBody{failure{e.Code, e.Message}})
		}
	})
}

// classify says how err is answered.
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
