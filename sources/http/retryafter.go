package httpsource

import (
	"time"

	"github.com/vokter/vokter/internal/outbound"
)

// retryAfter is outbound.RetryAfter in whole seconds, rounded up.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	wait, ok = outbound.RetryAfter(value, now)
	return (wait + time.Second - 1).Truncate(time.Second), ok
}
