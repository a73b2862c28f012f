package manage

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
)

// Bearer is the bearer of a valid token. Its handler answers requests to the API as if they carried
// the token, for web pages in the same process.
type Bearer struct {
	api    *API
	caller *caller
}

// Bearer returns the bearer of the token with this hash, or nil if no valid token has it. The hash
// is what config.HashToken returns.
func (a *API) Bearer(hash string) *Bearer {
	if c := findCaller(a.callers(), hash); c != nil {
		return &Bearer{a, c}
	}
	return nil
}

// Named returns the bearer of the configured token with this name, or nil if there is none.
func (a *API) Named(name string) *Bearer {
	for _, c := range a.access.current.Load().callers {
		if c.Name == name {
			return &Bearer{a, c}
		}
	}
	return nil
}

// Reader returns a bearer who may look at what concerns clients, or at everything if clients is nil.
// Name stands for the bearer in messages.
func (a *API) Reader(name string, clients []string) *Bearer {
	return &Bearer{a, newCaller(config.Token{Name: name, Scopes: []config.Scope{config.ScopeRead}, Clients: clients})}
}

// Own returns a client of s in this process, which may do everything.
func Own(s Service) (*client.Client, error) {
	a, err := New(s, Options{})
	if err != nil {
		return nil, err
	}
	return client.Over(&Bearer{a, newOwner("")}), nil
}

// newOwner returns the caller with the token in the data directory.
func newOwner(token string) *caller {
	return newCaller(config.Token{
		Name: "data directory", Hash: config.HashToken(token), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin},
	})
}

// callers returns who may use the API now.
func (a *API) callers() []*caller {
	return slices.Concat(a.ownCallers, a.logins.callers(), a.access.current.Load().callers)
}

// Name returns the name of the token.
func (b *Bearer) Name() string { return b.caller.Name }

// May reports whether the token has a scope.
func (b *Bearer) May(s config.Scope) bool { return slices.Contains(b.caller.Scopes, s) }

// Clients returns the clients that the token is for. Nil means all.
func (b *Bearer) Clients() []string { return b.caller.Clients }

// ServeHTTP answers a request to the API.
func (b *Bearer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := NewDeadlineWriter(rw, writeStallTimeout)
	if refuseOverLimit(w, b.caller) {
		return
	}
	b.api.answer(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, b.caller)))
}

// RoundTrip answers a request to the API in this process, for a client.Client.
func (b *Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &responseRecorder{status: http.StatusOK, header: make(http.Header)}
	b.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// responseRecorder keeps a response in memory.
type responseRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *responseRecorder) Header() http.Header         { return k.header }
func (k *responseRecorder) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *responseRecorder) WriteHeader(status int)      { k.status = status }

var _ http.RoundTripper = (*Bearer)(nil)
