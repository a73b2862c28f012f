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

	"github.com/vokter/vokter/pipeline/failure"
)

// UserAgent is the user agent of sinks.
const UserAgent = "vokter (+https://github.com/vokter/vokter)"

// maxAnswer is how many bytes of an answer's body are read. A message of 16,000 characters with
// six bytes each fits.
const maxAnswer = 128 << 10

// Timeouts for reading the body of an answer, so that an endless body does not block an attempt:
// bodyReadTimeout if the body decides, bodyDrainTimeout if the status does.
const (
	bodyReadTimeout  = 15 * time.Second
	bodyDrainTimeout = time.Second
)

// Sender makes requests. Client must come from NewClient, and Secrets must have all secrets. It
// is safe for concurrent use.
type Sender struct {
	Client  *http.Client
	Secrets Scrubber
	// BodyDecides says that a status 2xx is not enough: the body says whether the receiver
	// accepted the notification, so Do waits for it.
	BodyDecides bool
	// Now is the clock.
	Now func() time.Time
}

// Do makes one request and returns the answer, whatever its status. An error is a network
// error. It is permanent if the address is refused, ambiguous if the whole request was written,
// and reported at once if the certificate is invalid.
func (s *Sender) Do(ctx context.Context, method string, u *url.URL, h http.Header, body []byte) (*Answer, error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The transport may set this from another goroutine after Do has returned.
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
	// Like http.NewRequest, but u is parsed already.
	req := (&http.Request{
		Method: method, URL: withRootedPath(u), Host: u.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: first, GetBody: again, ContentLength: int64(len(body)),
	}).WithContext(traced)
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, s.classifyError(ctx, err, wrote.Load())
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, url: u, now: s.Now()}
	// After a change of protocol the context would not end the read.
	if a.Status != http.StatusSwitchingProtocols && resp.Body != http.NoBody {
		limit := bodyDrainTimeout
		if s.BodyDecides {
			limit = bodyReadTimeout
		}
		defer time.AfterFunc(limit, func() { cancel(errBodyTimeout) }).Stop()
		if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
			a.Broken = s.Secrets.Wrap("the answer broke off", cmp.Or(ctx.Err(), context.Cause(reading), err))
		}
	}
	Tell(ctx, statusText(a.Status))
	return a, nil
}

var errBodyTimeout = errors.New("its end did not come in time")

// withRootedPath returns u with a leading slash in its path, which JoinPath may leave out.
func withRootedPath(u *url.URL) *url.URL {
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

// WithObserver returns a context with which Do calls see with the status of each answer, such
// as "204 No Content".
func WithObserver(ctx context.Context, see func(status string)) context.Context {
	return context.WithValue(ctx, observerKey{}, see)
}

// Tell calls the observer of ctx, if there is one, with a status. Do does that itself; Tell is
// for sinks with another protocol.
func Tell(ctx context.Context, status string) {
	if see, ok := ctx.Value(observerKey{}).(func(status string)); ok {
		see(status)
	}
}

// classifyError classifies err, because of which there is no answer. sent says that the whole request
// was written.
func (s *Sender) classifyError(ctx context.Context, err error, sent bool) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // the message of url.Error contains the URL
	}
	if _, ok := errors.AsType[*AddressError](err); ok {
		return failure.Permanent(s.Secrets.Wrap("refused to connect", err))
	}
	what := "no answer"
	if ctx.Err() != nil {
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			what = "no answer in time"
		}
	} else if class, _ := BadAnswer(err, ""); class != "" {
		what = "no valid answer"
	}
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	err = s.Secrets.Wrap(what, err)
	if distrusted {
		err = failure.TellAtOnce(err)
	}
	if sent {
		return failure.Ambiguous(err)
	}
	return err
}

// ParseURL parses the http or https URL of a receiver. Errors show example and never raw, which
// may hold a secret.
func ParseURL(raw, example string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, fmt.Errorf("a URL is required, such as %s", example)
	case err != nil:
		return nil, fmt.Errorf("this is not a URL; write one such as %s", example)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the URL must begin with https:// or http://, such as %s", example)
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

// Advised is an error with advice on what to do about it.
type Advised struct {
	Err error
	// Advice is a sentence without a capital and a full stop, such as "try tls: starttls".
	Advice string
}

func (a *Advised) Error() string { return a.Err.Error() + "; " + a.Advice }

// Unwrap returns the error without the advice, with its class.
func (a *Advised) Unwrap() error { return a.Err }
