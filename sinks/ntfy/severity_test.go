package ntfy

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
		{0, "", 0}, {4, "warning", 4}, {0, "critical", 5}, {4, "critical", 5}, {0, "info", 2}, {4, "info", 2}, {1, "info", 1},
	} {
		if got := (&Ntfy{priority: c.priority}).priorityOf(pipeline.Notification{Severity: c.severity}); got != c.want {
			t.Errorf("%d with %q is %d, want %d", c.priority, c.severity, got, c.want)
		}
	}
}
