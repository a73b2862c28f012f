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

// Sender makes requests. Client has to come from NewClient, and Secrets has to know
// everything that must not be shown. It is safe for concurrent use.
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
	// Body is what arrived in time, at most 128 KB.
	Body []byte
	// Broken says why the body is not whole; nil where it is, or is longer than that.
	Broken error

	url *url.URL
	now time.Time
}

// Do makes one request and returns the answer, whatever its status. An error is one of
// the network: it is permanent where the address is refused, marked ambiguous where the
// whole request was written, and reported at once where the certificate is invalid.
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
		return failure.Permanent(s.Secrets.Wrap("refused to connect", err))
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
		err = failure.TellAtOnce(err)
	}
	if sent {
		return failure.Ambiguous(err)
	}
	return err
}

// ParseURL reads the http or https URL of a receiver, whose example is such a URL. Its
// errors never quote raw, since it may hold a secret.
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

// Err says what the status of a means where the protocol says nothing else: nil for 2xx;
// failure.Gone for 410; failure.Limited for 429; Denied for 401 and 403; failure.Refused for
// what is wrong with this body alone; and otherwise an error to try again after. Whatever is
// tried again waits for as long as Retry-After says.
func (a *Answer) Err() error {
	code := a.Status
	if code >= 200 && code <= 299 {
		return nil
	}
	err := a.says()
	if code >= 300 && code <= 399 {
		err = fmt.Errorf("%w%s; redirects are not followed", err, target(a))
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

// Without is the error of a, whose status is 2xx, where the body lacks what the receiver says
// of a notification that it has. It may have it all the same, as where the answer broke off.
func (a *Answer) Without(what string) error {
	if a.Broken != nil {
		return failure.Ambiguous(fmt.Errorf("answered %s, but %w", statusText(a.Status), a.Broken))
	}
	return failure.Ambiguous(fmt.Errorf("answered %s, but without %s", statusText(a.Status), what))
}

// RetryAfter returns how long the receiver wishes to be left alone, at most a day; ok is
// false where it does not say.
func (a *Answer) RetryAfter() (wait time.Duration, ok bool) {
	return RetryAfter(a.Header.Get("Retry-After"), a.now)
}

// Limit marks err as a limit of the receiver, which is asked again when it said: after wait,
// or when the header says where that is later; 0 means that the body does not say.
func (a *Answer) Limit(err error, wait time.Duration) error {
	if d, ok := a.RetryAfter(); ok {
		wait = max(wait, d, time.Millisecond) // 0 would mean that it did not say
	}
	return failure.Limited(err, wait)
}

// What Denied says, where the sink knows no better.
const (
	TokenRefused  = "the token is refused"
	AccessRefused = "access is refused"
)

// Denied is the error of a, with which the receiver refuses us for the reason what. Somebody has
// to fix that, and the notification waits meanwhile.
func (a *Answer) Denied(what string) error {
	err := fmt.Errorf("%s: %w", what, a.says())
	if d, ok := a.RetryAfter(); ok {
		err = failure.RetryAfter(err, d)
	}
	return failure.TellAtOnce(err)
}

func (a *Answer) says() error { return fmt.Errorf("answered %s", statusText(a.Status)) }

// statusText is code with its name.
func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return strconv.Itoa(code)
}

// maxTarget bounds the shown target of a redirect, in runes.
const maxTarget = 100

// target names where a redirect leads, without its path and query, which may be secret.
func target(a *Answer) string {
	u, err := a.url.Parse(a.Header.Get("Location"))
	if a.Header.Get("Location") == "" || err != nil || u.Host == "" {
		return ""
	}
	return ", to " + render.Short(render.Clean(u.Scheme+"://"+u.Host), maxTarget)
}

// MaxRetryAfter is the longest wait that a host can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the value of the header Retry-After: seconds, or a date, which counts
// from now. What lies in the past is 0; what is more than MaxRetryAfter is that. ok is
// false where there is none or it makes no sense.
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

// Unwrap returns the error without the advice; its class stays.
func (a *Advised) Unwrap() error { return a.Err }
