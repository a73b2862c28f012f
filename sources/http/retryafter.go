package httpsource

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads the header Retry-After: seconds, or a date. ok is false where there is
// none or it makes no sense. The wait is at most MaxRetryAfter, in whole seconds, rounded up.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, false
		}
		return time.Duration(min(n, int64(MaxRetryAfter/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	wait = min(max(at.Sub(now), 0), MaxRetryAfter)
	return (wait + time.Second - 1).Truncate(time.Second), true
}
