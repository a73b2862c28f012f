package guard

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

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
