package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
)

// maxBody is the largest body of a request, in bytes: a subscription has at most 10,000 keywords.
const maxBody = 1 << 20

// Options configure the API of a process.
type Options struct {
	// Process describes the process.
	Process client.Process
	// Token is the token of this run in the data directory, with which verbs may do everything. If it is empty there
	// is none.
	Token string
	// Logins are how people log in. Default: they are in memory.
	Logins *Logins
	// Sinks keeps the sinks that are made at run time. Nil means that there can be none.
	Sinks SinkStore
	// Access are the other callers. Nil means that there are none.
	Access *Access
}

// API is the handler of the API.
type API struct {
	api        *api
	mux        *http.ServeMux
	ownCallers []*caller
	logins     *Logins
	access     *Access
}

// New returns the API of s below client.Prefix. Requests must carry a token as a bearer token. The
// API refuses requests that a browser sends for another web site, unless Access allows its origin.
// On a loopback address it refuses every Host other than a loopback address or localhost, because
// a web site could let its own name point here. Until s is running only a few routes work.
func New(s Service, o Options) (*API, error) {
	mux := http.NewServeMux()
	if o.Logins == nil {
		var err error
		if o.Logins, err = OpenLogins("", slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	a := &API{api: newAPI(mux, s, o), mux: mux, access: o.Access, logins: o.Logins}
	if o.Token != "" {
		a.ownCallers = []*caller{newOwner(o.Token)}
	}
	if a.access == nil {
		a.access = new(Access)
	}
	if a.access.current.Load() == nil {
		return a, a.access.Configure(config.API{})
	}
	return a, nil
}

// Close refuses new backups, and waits until the current one has ended and removed its files.
// Close the connections first, so that the current backup fails.
func (a *API) Close() { a.api.closeOnce.Do(func() { a.api.backupSlot <- struct{}{} }) }

// Logins returns how people log in.
func (a *API) Logins() *Logins { return a.logins }

// ServeHTTP answers a request.
func (a *API) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := NewDeadlineWriter(rw, writeStallTimeout)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	now := a.access.current.Load()
	if why := now.whyCrossSite(r); why != "" {
		refuse(w, http.StatusForbidden, "", why)
		return
	}
	if origin := r.Header.Get("Origin"); now.origins[origin] {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Add("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT")
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	who, ok := a.authenticate(w, r, a.callers())
	if !ok {
		return
	}
	a.answer(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
}

// answer answers a request whose context has its caller.
func (a *API) answer(w *DeadlineWriter, r *http.Request) {
	if err := readBody(w, r); err != nil {
		status, says := http.StatusBadRequest, "the body cannot be read"
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status, says = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit)
		} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			status, says = http.StatusRequestTimeout, "the body arrives too slowly"
		} else if errors.Is(err, errRepeated) {
			says = err.Error()
		}
		refuse(w, status, "", says)
		return
	}
	if why := queryMistake(r.URL); why != "" {
		refuse(w, http.StatusBadRequest, "", why)
		return
	}
	a.serveRoute(w, r)
}

// whyCrossSite returns why a request that a browser may have sent for another web site is refused.
func (now *accessRules) whyCrossSite(r *http.Request) string {
	if Rebound(r) {
		return "the Host of the request is not a loopback address; write 127.0.0.1 or localhost"
	}
	// A GET can be expensive, so it gets the same check as a POST.
	asPost := *r
	asPost.Method = http.MethodPost
	if now.crossOrigin.Check(&asPost) != nil {
		return "the request comes from another web site"
	}
	return ""
}

// authenticate returns which of callers sent r, or answers that it is refused.
func (*API) authenticate(w *DeadlineWriter, r *http.Request, callers []*caller) (*caller, bool) {
	if len(callers) == 0 {
		refuse(w, http.StatusForbidden, "", "the API is off: its token would be in the data directory, and this process has none; configure api.tokens")
		return nil, false
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var who *caller
	if strings.EqualFold(scheme, "Bearer") {
		who = findCaller(callers, config.HashToken(token))
	}
	if who == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="vokter-stream"`)
		refuse(w, http.StatusUnauthorized, client.ProblemUnauthorized,
			"send a token as Authorization: Bearer TOKEN: one that the configuration names, or the one in the file "+tokenFile+" of the data directory")
		return nil, false
	}
	if refuseOverLimit(w, who) {
		return nil, false
	}
	return who, true
}

// refuseOverLimit answers that who sent too many requests, if that is so, and reports whether it is.
func refuseOverLimit(w *DeadlineWriter, who *caller) bool {
	if who.limit == nil || who.limit.Allow() {
		return false
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "", fmt.Sprintf("the token %q may send %.4g requests a second; wait a second", who.Name, who.Rate))
	return true
}

// readBody reads the whole body of r while the read timeout of the server holds, and then removes the
// timeout: it would cancel longer work. A list may be large, and has more time.
func readBody(w *DeadlineWriter, r *http.Request) error {
	limit, list := int64(maxBody), isList(r)
	if list {
		limit = maxListBody
		if err := w.SetReadTimeout(longTimeout); err != nil {
			return err
		}
	}
	b, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, limit))
	if err != nil {
		return err
	}
	if !list { // the entries of a list are looked at one by one
		if name := repeatedField(b); name != "" {
			return fmt.Errorf("%w: %.100q", errRepeated, name)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return w.EndReadTimeout()
}

// errRepeated says that an object of a body has a field twice, of which one would be ignored.
var errRepeated = errors.New("an object of the body has this field twice")

// queryMistake returns what is wrong with the query of u: it is malformed, or a parameter is empty or
// given twice.
func queryMistake(u *url.URL) string {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "the query is malformed: " + err.Error()
	}
	for name, values := range q {
		if len(values) > 1 {
			return fmt.Sprintf("%s is given %d times", name, len(values))
		}
		if values[0] == "" {
			return name + " is empty; leave the parameter out"
		}
	}
	return ""
}

// serveRoute answers r with the handler of its route.
func (a *API) serveRoute(w *DeadlineWriter, r *http.Request) {
	h, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	// The mux knows whether it is the path or the method that has no route.
	says := &headerRecorder{header: make(http.Header)}
	h.ServeHTTP(says, r)
	if says.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", says.header.Get("Allow"))
		refuse(w, says.status, "", fmt.Sprintf("%s is asked for with %s", r.URL.Path, says.header.Get("Allow")))
		return
	}
	refuse(w, http.StatusNotFound, "", "there is no "+r.URL.Path)
}

// headerRecorder keeps the header of a response and drops its body.
type headerRecorder struct {
	header http.Header
	status int
}

func (s *headerRecorder) Header() http.Header         { return s.header }
func (s *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (s *headerRecorder) WriteHeader(status int)      { s.status = status }

// refuse sends a problem.
func refuse(w http.ResponseWriter, status int, kind, detail string) {
	b, err := json.Marshal(&huma.ErrorModel{Type: kind, Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		b = nil // cannot happen: the fields are text
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// Rebound reports whether r arrived at a loopback address for a Host that is none: a web site may
// have let its own name point there.
func Rebound(r *http.Request) bool { return arrivedAtLoopback(r) && !isLocalHost(r.Host) }

// arrivedAtLoopback reports whether r arrived at a loopback address. It returns true if the address is
// not known.
func arrivedAtLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}

// isLocalHost reports whether host, with or without a port, is a loopback address or localhost.
func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
