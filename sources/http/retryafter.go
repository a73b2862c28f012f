package httpsource

import (
	"time"

	"github.com/vokter/vokter/internal/guard"
)

// retryAfter is guard.RetryAfter in whole seconds, rounded up.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	wait, ok = guard.RetryAfter(value, now)
	return (wait + time.Second - 1).Truncate(time.Second), ok
}
