package gotify

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func TestPriorityOfSeverity(t *testing.T) {
	for _, c := range []struct {
		priority int
		severity string
		want     int
	}{
		{5, "", 5}, {5, "warning", 5}, {5, "critical", 8}, {10, "critical", 10}, {5, "info", 3}, {1, "info", 1},
	} {
		if got := (&Gotify{priority: c.priority}).priorityOf(pipeline.Notification{Severity: c.severity}); got != c.want {
			t.Errorf("%d with %q is %d, want %d", c.priority, c.severity, got, c.want)
		}
	}
}
