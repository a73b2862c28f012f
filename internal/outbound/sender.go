package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// UserAgent is what sinks call themselves.
const UserAgent = "vokter (+https://github.com/vokter/vokter)"

// maxAnswer is how much of an answer's body is read at most, in bytes: room for a message of
// 16,000 characters that comes back with six bytes for each.
const maxAnswer = 128 << 10

// How long the body of an answer is read at most, so that one that never ends does not hold an
// attempt: where it decides, and where the status does.
const (
	readFor  = 15 * time.Second
	drainFor = time.Second
)

// Sender makes requests. Client has to be one of package guard, and Secrets has to know
// all that must not be told. It is safe for concurrent use.
type Sender struct {
	Client  *http.Client
	Secrets Scrubber
	// BodyDecides says that a status 2xx is not enough: the body says whether the receiver has
	// the notification, and is waited for.
	BodyDecides bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Answer is what a receiver answered.
type Answer struct {
	Status int
	Header http.Header
	// Body is what came in time, at most 128 KB.
	Body []byte
	// Broken says why the body is not whole; nil where it is, or is longer than that.
	Broken error

	url *url.URL
	now time.Time
}

// Do makes one request and returns the answer, whatever its status. An error is one of
// the network: it is permanent where the address is refused, marked ambiguous where the
// whole request was written, and told at once where the certificate does not hold.
func (s *Sender) Do(ctx context.Context, method string, u *url.URL, h http.Header, body []byte) (*Answer, error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The transport may report this after Do returned, from another goroutine.
	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(reading, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) },
	})
	if h == nil {
		h = make(http.Header)
	}
	h.Set("User-Agent", UserAgent)
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := again()
	// As http.NewRequest makes it, but that u was parsed before.
	req := (&http.Request{
		Method: method, URL: rooted(u), Host: u.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: first, GetBody: again, ContentLength: int64(len(body)),
	}).WithContext(traced)
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, s.failure(ctx, err, wrote.Load())
	}
	defer resp.Body.Close()
	limit := drainFor
	if s.BodyDecides {
		limit = readFor
	}
	defer time.AfterFunc(limit, func() { cancel(errSlow) }).Stop()
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, url: u, now: now()}
	// After a change of protocol no context would end the reading.
	if a.Status != http.StatusSwitchingProtocols {
		if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
			a.Broken = s.Secrets.Wrap("the answer broke off", cmp.Or(ctx.Err(), context.Cause(reading), err))
		}
	}
	if see, ok := observer(ctx); ok {
		see(statusText(a.Status))
	}
	return a, nil
}

var errSlow = errors.New("its end did not come in time")

// rooted returns u with the slash that begins a path, which JoinPath may leave out.
func rooted(u *url.URL) *url.URL {
	if u.Path == "" || u.Path[0] == '/' {
		return u
	}
	r := *u
	if r.Path = "/" + r.Path; r.RawPath != "" {
		r.RawPath = "/" + r.RawPath
	}
	return &r
}

type observerKey struct{}

// WithObserver returns a context for Do that tells see the status of each answer, such as
// "204 No Content".
func WithObserver(ctx context.Context, see func(status string)) context.Context {
	return context.WithValue(ctx, observerKey{}, see)
}

// Tell tells the observer of ctx, if there is one, what was answered. Do does that itself; it
// is for sinks with another protocol.
func Tell(ctx context.Context, status string) {
	if see, ok := observer(ctx); ok {
		see(status)
	}
}

func observer(ctx context.Context) (see func(status string), ok bool) {
	see, ok = ctx.Value(observerKey{}).(func(status string))
	return see, ok
}

// failure says why there was no answer. sent says that the whole request was written.
func (s *Sender) failure(ctx context.Context, err error, sent bool) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // the text of a url.Error holds the URL
	}
	if _, ok := errors.AsType[*AddressError](err); ok {
		return pipeline.Permanent(s.Secrets.Wrap("refused to connect", err))
	}
	what := "no answer"
	if ctx.Err() != nil {
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			what = "no answer in time"
		}
	}
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	err = s.Secrets.Wrap(what, err)
	if distrusted {
		err = pipeline.TellAtOnce(err)
	}
	if sent {
		return pipeline.Ambiguous(err)
	}
	return err
}

// ParseURL reads the http or https URL of a receiver, whose example is such a URL. Its
// errors never quote raw, since it may hold a secret.
func ParseURL(raw, example string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, errors.New("a URL is needed")
	case err != nil:
		return nil, fmt.Errorf("this is not a URL; write one such as %s", example)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, fmt.Errorf("the URL has no host; write one such as %s", example)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("the port of the URL is not between 1 and 65535")
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
