package outbound

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Err says what the status of a means where the protocol says nothing else: nil for 2xx;
// pipeline.Gone for 410; pipeline.Limited for 429; Denied for 401 and 403; pipeline.Refused for
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
		err = pipeline.RetryAfter(err, d)
	}
	switch code {
	case http.StatusTooManyRequests:
		return a.Limit(err, 0)
	case http.StatusUnauthorized:
		return a.Denied(TokenRefused)
	case http.StatusForbidden:
		return a.Denied(AccessRefused)
	case http.StatusGone:
		return pipeline.Gone(err)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return pipeline.Refused(err)
	}
	return err
}

// Without is the error of a, whose status is 2xx, where the body lacks what the receiver says
// of a notification that it has. It may have it all the same, as where the answer broke off.
func (a *Answer) Without(what string) error {
	if a.Broken != nil {
		return pipeline.Ambiguous(fmt.Errorf("answered %s, but %w", statusText(a.Status), a.Broken))
	}
	return pipeline.Ambiguous(fmt.Errorf("answered %s, but without %s", statusText(a.Status), what))
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
	return pipeline.Limited(err, wait)
}

// What Denied says, where the sink knows no better.
const (
	TokenRefused  = "the token is refused"
	AccessRefused = "access is refused"
)

// Denied is the error of a, with which the receiver refuses us for the reason what. Somebody has
// to mend that, and the notification waits meanwhile.
func (a *Answer) Denied(what string) error {
	err := fmt.Errorf("%s: %w", what, a.says())
	if d, ok := a.RetryAfter(); ok {
		err = pipeline.RetryAfter(err, d)
	}
	return pipeline.TellAtOnce(err)
}

func (a *Answer) says() error { return fmt.Errorf("answered %s", statusText(a.Status)) }

// statusText is code with its name.
func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return strconv.Itoa(code)
}

// maxTarget bounds what is told of where a redirect leads, in runes.
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
