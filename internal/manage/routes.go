package manage

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

func (a *api) pages(w *writer, r *http.Request) error {
	l, err := a.list(r)
	if err != nil {
		return err
	}
	// Encode one page at a time: the encoding of all would double the memory.
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
		l.Receivers = []inspect.Receiver{}
	}
	return w.reply(receiversBody{l.Receivers})
}

func (a *api) list(r *http.Request) (inspect.Listing, error) {
	q, err := query(r, "url", "client", "sinks", "sketches", "tree")
	if err != nil {
		return inspect.Listing{}, err
	}
	f := inspect.ListFilter{URL: q.Get("url"), Client: q.Get("client")}
	if f.Sinks, err = flag(q, "sinks"); err != nil {
		return inspect.Listing{}, err
	}
	if f.Sketches, err = flag(q, "sketches"); err != nil {
		return inspect.Listing{}, err
	}
	if f.Tree, err = flag(q, "tree"); err != nil {
		return inspect.Listing{}, err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return inspect.Listing{}, err
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
	e, err := a.service.Explain(r.Context(), q.Get("url"), inspect.ExplainFilter{Client: q.Get("client"), Keyword: q.Get("keyword")})
	if err != nil {
		return err
	}
	return w.reply(e)
}

func (a *api) deadLetters(w *writer, r *http.Request) error {
	q, err := query(r, "sink", "client", "url", "since", "messages")
	if err != nil {
		return err
	}
	f := flow.DeadFilter{Sink: q.Get("sink"), Client: q.Get("client"), URL: q.Get("url")}
	if f.Messages, err = flag(q, "messages"); err != nil {
		return err
	}
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
		all = []flow.DeadLetter{}
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

// command decodes a command about one page and calls do with it.
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
	var f flow.DeadFilter
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

func (a *api) retry(w *writer, r *http.Request) error {
	var f vokter.RetryFilter
	if err := decode(w, r, &f); err != nil {
		return err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	tried, err := a.service.Retry(r.Context(), f)
	if err != nil {
		return err
	}
	return w.reply(retriedBody{tried})
}

func (a *api) backup(w *writer, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	select {
	case a.copying <- struct{}{}:
		defer func() { <-a.copying }()
	default:
		return &apiError{http.StatusServiceUnavailable, codeUnavailable, "another backup is being made; try again when it has ended"}
	}
	return a.service.Backup(r.Context(), &tarWriter{w})
}

// guarded refuses requests that a browser sends for another web site.
func guarded(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if atLoopback(r) && !local(r.Host) {
			forbid(w, "the Host of the request is not a loopback address; write 127.0.0.1 or localhost")
			return
		}
		// A GET can be expensive, so it gets the same check as a POST.
		asPost := *r
		asPost.Method = http.MethodPost
		if origins.Check(&asPost) != nil {
			forbid(w, "the request comes from another web site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorized refuses requests without token. If token is empty it refuses all requests.
func authorized(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token == "" {
			forbid(w, "the API is off: its token would be in the data directory, and this process has none")
			return
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="vokter-stream"`)
			_ = newWriter(w).send(http.StatusUnauthorized, errorBody{failure{codeUnauthorized,
				"send the token, which is in the file " + tokenFile + " of the data directory, as Authorization: Bearer TOKEN"}})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func forbid(w http.ResponseWriter, message string) {
	_ = newWriter(w).send(http.StatusForbidden, errorBody{failure{codeForbidden, message}})
}

// atLoopback reports whether r arrived at a loopback address. It returns true if the address is
// not known.
func atLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

// local reports whether host, with or without a port, is a loopback address or localhost.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// apiError is a response with a status other than 200.
type apiError struct {
	Status  int
	Code    string
	Message string
}

func (e *apiError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, codeInvalid, fmt.Sprintf(format, args...)}
}

// query returns the query of r. A parameter that is not in known, or is given twice, is an
// error.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query is malformed: %v", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("unknown parameter %q", name)
		case len(values) > 1:
			return nil, invalid("%s is given %d times", name, len(values))
		}
	}
	return q, nil
}

// flag reports whether the parameter name of q is "true". Any other value is an error.
func flag(q url.Values, name string) (bool, error) {
	switch q.Get(name) {
	case "":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalid("%s: %q is not true; write true, or leave the parameter out", name, q.Get(name))
}

// decode reads the JSON object of r's body into v. An unknown key is an error.
func decode(w *writer, r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != mediaJSON {
		return &apiError{http.StatusUnsupportedMediaType, codeMediaType, "the body must be sent as " + mediaJSON}
	}
	if _, err := query(r); err != nil {
		return err
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.Join(more, errors.New("something follows the object"))
		}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return invalid("the body is not the JSON object that is asked for: %v", err)
	}
	return w.patient()
}

func checkURL(raw string) error {
	if _, err := pageurl.Canonical(raw); err != nil {
		return invalid("url: %v", err)
	}
	return nil
}
