package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/vokter/vokter/internal/guard"
	"github.com/vokter/vokter/pipeline"
)

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
	if d, ok := guard.RetryAfter(resp.Header.Get("Retry-After"), now); ok {
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
