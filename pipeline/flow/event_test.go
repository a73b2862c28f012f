package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

func TestEvent(t *testing.T) {
	n := pipeline.Notification{Status: pipeline.StatusOK, ID: "ID", Type: pipeline.NotificationType, URL: "https://example.com/ä\r\nx: y\x85\uFFFE\xff", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	e, err := CloudEvent(n)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ce_specversion": "1.0", "ce_id": "ID", "ce_type": TypeNotification, "ce_source": SourceVokter,
		"ce_subject": "https://example.com/äx: y", "ce_time": "2026-01-02T03:04:05Z", "content-type": "application/json", HeaderKey: "",
	}
	got := e.Metadata()
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %q, want %q", name, got[name], value)
		}
	}
	if !strings.Contains(string(e.Body), `"diffs":[]`) {
		t.Errorf("got the body %s, want no null", e.Body)
	}
	// An optional attribute that is empty is left out.
	if e, err = CloudEvent((pipeline.Notification{ID: "ID", Type: pipeline.NotificationTypeHealth})); err != nil || e.Type != TypeHealth {
		t.Errorf("got %v, %v, want a health event", e, err)
	}
	for _, name := range []string{"ce_subject", "ce_time"} {
		if v, ok := e.Metadata()[name]; ok {
			t.Errorf("%s is %q, want none", name, v)
		}
	}
	_, err = CloudEvent(pipeline.Notification{})
	if class, _ := pipeline.ClassOf(err); err == nil || class != pipeline.ClassPermanent {
		t.Errorf("without an ID: got %v, want a permanent error", err)
	}
}
