package outbound

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline/failure"
)

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
