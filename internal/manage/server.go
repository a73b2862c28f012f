package manage

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// Service is what a Server serves.
type Service interface {
	Manager
	// Ready returns nil while the pipeline is at work, and otherwise why it is not.
	Ready() error
}

// maxBody bounds the body of a request in bytes.
const maxBody = 64 << 10

// stall is how long a reader of an answer may take nothing before it is given up.
const stall = 30 * time.Second

// Handler returns the API of s below Prefix. p is what it says of its process. It answers
// only requests whose Host is a loopback address or localhost, since any web page could
// have its own name point here, and none that a browser sends for another site.
func Handler(s Service, p Process) http.Handler {
	a := &api{s}
	mux := http.NewServeMux()
	get := func(path string, h handler) { mux.Handle(Prefix+path, a.answer(http.MethodGet, h)) }
	post := func(path string, h handler) { mux.Handle(Prefix+path, a.answer(http.MethodPost, h)) }
	get("/process", func(w *writer, r *http.Request) error {
		if _, err := query(r); err != nil {
			return err
		}
		return w.reply(p)
	})
	get("/pages", a.pages)
	get("/receivers", a.receivers)
	get("/explain", a.explain)
	get("/dead-letters", a.deadLetters)
	get("/backup", a.backup)
	post("/cancel", a.cancel)
	post("/resume", a.resume)
	post("/replay", a.replay)
	mux.Handle(Prefix+"/", a.answer("", func(_ *writer, r *http.Request) error {
		return &apiError{http.StatusNotFound, codeNotFound, "there is no " + r.URL.Path}
	}))
	return guarded(mux)
}

type api struct{ service Service }

// handler answers a request. It returns an error only where it has written nothing, or
// where the answer has to break off.
type handler func(w *writer, r *http.Request) error

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

func (a *api) pages(w *writer, r *http.Request) error {
	l, err := a.list(r)
	if err != nil {
		return err
	}
	// One after the other: encoded as a whole they would stand in memory twice.
	w.begin(http.StatusOK, mediaJSON)
	if _, err := io.WriteString(w, `{"pages":[`); err != nil {
		return err
	}
	out := json.NewEncoder(w)
	for i, p := range l.Pages {
		if i > 0 {
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
		}
		if err := out.Encode(p); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func (a *api) receivers(w *writer, r *http.Request) error {
	l, err := a.list(r)
	if err != nil {
		return err
	}
	if l.Receivers == nil {
		l.Receivers = []vokter.ReceiverInfo{}
	}
	return w.reply(receiversBody{l.Receivers})
}

func (a *api) list(r *http.Request) (vokter.Listing, error) {
	q, err := query(r, "url", "client")
	if err != nil {
		return vokter.Listing{}, err
	}
	f := vokter.ListFilter{URL: q.Get("url"), Client: q.Get("client")}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return vokter.Listing{}, err
		}
	}
	return a.service.List(r.Context(), f)
}

func (a *api) explain(w *writer, r *http.Request) error {
	q, err := query(r, "url", "client", "keyword")
	if err != nil {
		return err
	}
	if err := checkURL(q.Get("url")); err != nil {
		return err
	}
	e, err := a.service.Explain(r.Context(), q.Get("url"), vokter.ExplainFilter{Client: q.Get("client"), Keyword: q.Get("keyword")})
	if err != nil {
		return err
	}
	return w.reply(e)
}

func (a *api) deadLetters(w *writer, r *http.Request) error {
	q, err := query(r, "sink", "client", "url", "since")
	if err != nil {
		return err
	}
	f := pipeline.DeadFilter{Sink: q.Get("sink"), Client: q.Get("client"), URL: q.Get("url")}
	if since := q.Get("since"); since != "" {
		if f.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return invalid("since: %q is not a time such as 2026-01-31T15:04:05Z", since)
		}
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	all, err := a.service.DeadLetters(r.Context(), f)
	if err != nil {
		return err
	}
	if all == nil {
		all = []pipeline.DeadLetter{}
	}
	return w.reply(lettersBody{all})
}

func (a *api) cancel(w *writer, r *http.Request) error {
	return a.command(w, r, func(ctx context.Context, t targetBody) error {
		if t.Client == "" {
			return invalid("client: it is missing; name whose subscriptions are to end")
		}
		return a.service.Cancel(ctx, t.URL, t.Client)
	})
}

func (a *api) resume(w *writer, r *http.Request) error {
	return a.command(w, r, func(ctx context.Context, t targetBody) error { return a.service.Resume(ctx, t.URL, t.Client) })
}

// command carries out a command about one page.
func (a *api) command(w *writer, r *http.Request, do func(context.Context, targetBody) error) error {
	var t targetBody
	if err := decode(w, r, &t); err != nil {
		return err
	}
	if err := checkURL(t.URL); err != nil {
		return err
	}
	if err := do(r.Context(), t); err != nil {
		return err
	}
	return w.reply(struct{}{})
}

func (a *api) replay(w *writer, r *http.Request) error {
	var f pipeline.DeadFilter
	if err := decode(w, r, &f); err != nil {
		return err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	n, err := a.service.Replay(r.Context(), f)
	if err != nil {
		return err
	}
	return w.reply(replayedBody{n})
}

func (a *api) backup(w *writer, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	return a.service.Backup(r.Context(), &tarWriter{w})
}

// classify says how err is answered.
func (a *api) classify(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if refused, ok := errors.AsType[*vokter.Refusal](err); ok {
		switch refused.Code {
		case vokter.CodeNotFound:
			return &apiError{http.StatusNotFound, codeNotFound, refused.Message}
		case vokter.CodeConflict:
			return &apiError{http.StatusConflict, codeConflict, refused.Message}
		}
		return &apiError{http.StatusBadRequest, codeInvalid, refused.Message}
	}
	switch {
	case errors.Is(err, vokter.ErrBusy):
		return &apiError{http.StatusServiceUnavailable, codeBusy, err.Error()}
	case a.service.Ready() != nil:
		return &apiError{http.StatusServiceUnavailable, codeUnavailable, err.Error()}
	}
	return &apiError{http.StatusInternalServerError, codeInternal, err.Error()}
}
