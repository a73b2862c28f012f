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
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/internal/render"
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

// Answer is the response of a receiver.
type Answer struct {
	Status int
	Header http.Header
	// Body is the part of the body that arrived in time, at most 128 KB.
	Body []byte
	// Broken is the error that truncated the body. It is nil if the body is complete or longer
	// than 128 KB.
	Broken error

	url *url.URL
	now time.Time
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

// Err returns the meaning of the status of a, unless the protocol says more: nil for 2xx,
// failure.Gone for 410, failure.Limited for 429, Denied for 401 and 403, failure.Refused for
// statuses about the body, and otherwise an error to retry. Retries wait as long as Retry-After
// says.
func (a *Answer) Err() error {
	code := a.Status
	if code >= 200 && code <= 299 {
		return nil
	}
	err := a.statusError()
	if code >= 300 && code <= 399 {
		err = fmt.Errorf("%w%s; redirects are not followed", err, redirectTarget(a))
	}
	if d, ok := a.RetryAfter(); ok {
		err = failure.RetryAfter(err, d)
	}
	switch code {
	case http.StatusTooManyRequests:
		return a.Limit(err, 0)
	case http.StatusUnauthorized:
		return a.Denied(TokenRefused)
	case http.StatusForbidden:
		return a.Denied(AccessRefused)
	case http.StatusGone:
		return failure.Gone(err)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return failure.Refused(err)
	}
	return err
}

// Without returns the error for an answer with status 2xx whose body lacks the receiver's
// confirmation. If the answer is truncated, the error is ambiguous, because the receiver may
// have the notification.
func (a *Answer) Without(what string) error {
	if a.Broken != nil {
		return failure.Ambiguous(fmt.Errorf("answered %s, but %w", statusText(a.Status), a.Broken))
	}
	return failure.Ambiguous(fmt.Errorf("answered %s, but without %s", statusText(a.Status), what))
}

// RetryAfter returns how long the receiver asks to wait, at most a day. ok is false if it does
// not say.
func (a *Answer) RetryAfter() (wait time.Duration, ok bool) {
	return RetryAfter(a.Header.Get("Retry-After"), a.now)
}

// Limit marks err as a limit of the receiver. The next attempt is made after wait, from the
// body, or at the time in the header if that is later. A wait of 0 means that the body does not
// say.
func (a *Answer) Limit(err error, wait time.Duration) error {
	if d, ok := a.RetryAfter(); ok {
		wait = max(wait, d, time.Millisecond) // 0 would mean that the receiver did not say
	}
	return failure.Limited(err, wait)
}

// Default reasons for Denied.
const (
	TokenRefused  = "the token is refused"
	AccessRefused = "access is refused"
)

// Denied returns the error for an answer that refuses access for the reason what. Somebody must
// fix that; the notification waits until then.
func (a *Answer) Denied(what string) error {
	err := fmt.Errorf("%s: %w", what, a.statusError())
	if d, ok := a.RetryAfter(); ok {
		err = failure.RetryAfter(err, d)
	}
	return failure.TellAtOnce(err)
}

func (a *Answer) statusError() error { return fmt.Errorf("answered %s", statusText(a.Status)) }

// statusText returns code with its name.
func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return strconv.Itoa(code)
}

// maxRedirectTarget is the largest length of a redirect's target in an error, in runes.
const maxRedirectTarget = 100

// redirectTarget returns the target of a redirect without path and query, which may be secret.
func redirectTarget(a *Answer) string {
	u, err := a.url.Parse(a.Header.Get("Location"))
	if a.Header.Get("Location") == "" || err != nil || u.Host == "" {
		return ""
	}
	return ", to " + render.Short(render.Clean(u.Scheme+"://"+u.Host), maxRedirectTarget)
}

// MaxRetryAfter is the longest wait that a host can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter parses the header Retry-After: seconds, or a date. It returns the time from now, 0
// for a date in the past, and at most MaxRetryAfter. ok is false if the value is missing or
// invalid.
func RetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(n, uint64(MaxRetryAfter/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter), true
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
