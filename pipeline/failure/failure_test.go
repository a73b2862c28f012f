package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	base := errors.New("x")
	for _, c := range []struct {
		err   error
		class Class
		after time.Duration
	}{
		{base, ClassRetry, 0},
		{Permanent(base), ClassPermanent, 0},
		{fmt.Errorf("wrapped: %w", Gone(base)), ClassGone, 0},
		{RetryAfter(base, time.Minute), ClassRetry, time.Minute},
		{RetryAfter(base, -1), ClassRetry, 0},
		{fmt.Errorf("%w", context.Canceled), ClassCanceled, 0},
		{context.DeadlineExceeded, ClassRetry, 0},
		{Refused(base), ClassRefused, 0},
		{errors.Join(base, Permanent(base)), ClassPermanent, 0},
	} {
		if class, after := ClassOf(c.err); class != c.class || after != c.after {
			t.Errorf("%v: class %v after %v, want %v after %v", c.err, class, after, c.class, c.after)
		}
		if c.class != ClassCanceled && !errors.Is(c.err, context.DeadlineExceeded) && !errors.Is(c.err, base) {
			t.Errorf("%v hides its cause", c.err)
		}
	}
	if Permanent(nil) != nil || RetryAfter(nil, 1) != nil || Gone(nil) != nil {
		t.Error("nil must stay nil")
	}
}
