// Package rest serves the REST API of the first Vokter server, so that programs that were written
// for it work unchanged:
//
//	POST /vokter/v1/subscribe
//	POST /vokter/v1/cancel
//	GET  /vokter/v1/exampleRequest
//	GET  /vokter/v1/exampleResponse
//
// [New] returns its handler, which needs a vokter.Router. [Receivers] makes the sinks that deliver
// to the URLs of its clients; set their SinkOf as SinkOf of the vokter.Config. The page docs/rest.md
// describes the requests and the answers.
package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// Service carries out the commands of the API. A vokter.Router is one.
type Service interface {
	// Subscribe adds a subscription. It returns a *flow.Refusal where the client already has one to
	// the document, and *pipeline.FieldErrors where it is invalid.
	Subscribe(ctx context.Context, s pipeline.Subscription) error
	// CancelTo ends the subscriptions of client on the page of url that Subscribe made and that are
	// delivered to sink alone. It returns a *flow.Refusal where there are none.
	CancelTo(ctx context.Context, url, client, sink string) error
	// AccessClients returns the clients who may watch page, if it is fetched with credentials.
	AccessClients(page string) (clients []string, ok bool)
}

// Options configure the API.
type Options struct {
	// Token must be sent with subscribe and cancel, as "Authorization: TOKEN" or as
	// "Authorization: Bearer TOKEN". Default: no token is demanded.
	Token registry.Secret
	// Logger logs commands that fail for a reason that no code of the API has. Default: nothing is
	// logged.
	Logger *slog.Logger
}

// prefix is where the paths of the API begin.
const prefix = "/vokter/v1/"

// maxBody is the largest body of a request, in bytes.
const maxBody = 1 << 20

// answer is the body of every answer but the examples. Its fields keep this order.
type answer struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	status  int
}

// The answers of the first server, with the messages that it documented.
var (
	done            = answer{status: http.StatusOK}
	badDocument     = answer{1, "The provided document URL is invalid.", http.StatusBadRequest}
	badClient       = answer{2, "The provided client URL is invalid.", http.StatusBadRequest}
	noKeyword       = answer{3, "You need to provide at least one valid keyword.", http.StatusBadRequest}
	noEvent         = answer{4, "At least one difference event ('added' or 'removed') must not be ignored.", http.StatusBadRequest}
	alreadyWatched  = answer{5, "The request conflicts with an existing active job, since the provided document URL is already being watched and notified to the provided client URL.", http.StatusConflict}
	badFormat       = answer{6, "The request body has an invalid format.", http.StatusUnsupportedMediaType}
	notWatched      = answer{7, "The specified job to cancel does not exist.", http.StatusNotFound}
	badToken        = answer{8, "Authentication token is invalid or has expired.", http.StatusUnauthorized}
	notReady        = answer{9, "The request could not be carried out now; send it again later.", http.StatusServiceUnavailable}
	crossSite       = answer{10, "The request comes from another web site.", http.StatusForbidden}
	exampleResponse = done
)

// handler is the handler of New.
type handler struct {
	service     Service
	options     Options
	crossOrigin *http.CrossOriginProtection
}

// New returns the handler of the API, whose paths begin with /vokter/v1/. Like the first server it
// ignores unknown fields. It refuses requests that a browser sends for another web site and, on a
// loopback address, every Host other than a loopback address or localhost.
func New(s Service, o Options) http.Handler {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	h := &handler{service: s, options: o, crossOrigin: http.NewCrossOriginProtection()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+prefix+"subscribe", h.commandHandler(h.subscribe))
	mux.HandleFunc("POST "+prefix+"cancel", h.commandHandler(h.cancel))
	mux.HandleFunc("GET "+prefix+"exampleRequest", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, exampleRequest)
	})
	mux.HandleFunc("GET "+prefix+"exampleResponse", func(w http.ResponseWriter, _ *http.Request) {
		exampleResponse.write(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if arrivedAtLoopback(r) && !isLocalHost(r.Host) || h.crossOrigin.Check(r) != nil {
			crossSite.write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// commandHandler returns the handler of a command, which gets the fields of the body.
func (h *handler) commandHandler(do func(context.Context, fields) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.authorized(r) {
			badToken.write(w)
			return
		}
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			badFormat.write(w)
			return
		}
		f, err := readFields(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			badFormat.write(w)
			return
		}
		do(r.Context(), f).write(w)
	}
}

// authorized reports whether r has the token.
func (h *handler) authorized(r *http.Request) bool {
	if h.options.Token.IsZero() {
		return true
	}
	given := r.Header.Get("Authorization")
	if scheme, token, ok := strings.Cut(given, " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = token
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(h.options.Token.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (h *handler) subscribe(ctx context.Context, f fields) answer {
	s, bad := f.toSubscription()
	if bad != nil {
		return *bad
	}
	if named, ok := h.service.AccessClients(s.URL); ok && !slices.Contains(named, s.Client) {
		h.options.Logger.Warn("a subscription over the REST API is refused, since its page is fetched with credentials; add the client's URL to clients of the access entry to allow it",
			"page", s.URL, "client", s.Client)
		return badDocument
	}
	err := h.service.Subscribe(ctx, s)
	return h.answerFor(err, alreadyWatched)
}

func (h *handler) cancel(ctx context.Context, f fields) answer {
	url, client, bad := f.cancelTarget()
	if bad != nil {
		return *bad
	}
	// Others of the same client, such as those of the configuration, were not made by this API.
	return h.answerFor(h.service.CancelTo(ctx, url, client, client), notWatched)
}

// answerFor returns the answer for the result of a command, where refused is that of a *flow.Refusal.
func (h *handler) answerFor(err error, refused answer) answer {
	if err == nil {
		return done
	}
	if _, ok := errors.AsType[*flow.Refusal](err); ok {
		return refused
	}
	if bad, ok := errors.AsType[*pipeline.FieldError](err); ok {
		switch field, _, _ := strings.Cut(bad.Field, "["); field {
		case "url":
			return badDocument
		case "keywords":
			return noKeyword
		case "client", "sinks":
			return badClient
		}
		return badFormat
	}
	if !errors.Is(err, context.Canceled) {
		class, _ := failure.ClassOf(err)
		h.options.Logger.Warn("a request of the REST API could not be carried out", "class", class, "err", err)
	}
	return notReady
}

func (a answer) write(w http.ResponseWriter) {
	if a.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	writeJSON(w, a.status, a)
}

// arrivedAtLoopback reports whether r arrived at a loopback address.
func arrivedAtLoopback(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// isLocalHost reports whether host, with or without a port, is a loopback address or localhost.
func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}
