package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// maxRetryAfter caps what a receiver can ask for.
const maxRetryAfter = 24 * time.Hour

// statusError says what an answer means; nil is delivered.
func statusError(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	err := fmt.Errorf("answered %s", statusText(code))
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code >= 300 && code <= 399:
		return fmt.Errorf("%w%s; redirects are not followed", err, target(resp))
	}
	switch code {
	case http.StatusGone:
		return pipeline.Gone(err)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return pipeline.Refused(err)
	}
	if d, ok := retryAfter(resp.Header.Get("Retry-After"), now); ok {
		return pipeline.RetryAfter(err, d)
	}
	return err
}

func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return strconv.Itoa(code)
}

// target names where a redirect leads, without its path and query, which may be secret.
func target(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil || u.Host == "" {
		return ""
	}
	return fmt.Sprintf(", to %s://%s", u.Scheme, u.Host)
}

// retryAfter reads the header Retry-After: seconds, or a date. What lies in the past
// is 0; what is more than a day is a day. Anything else is as if it were absent.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}
