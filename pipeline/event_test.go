package pipeline

import (
	"strings"
	"testing"
	"time"
)

func TestEvent(t *testing.T) {
	n := Notification{Status: StatusOK, ID: "ID", Type: NotificationType, URL: "https://example.com/ä\r\nx: y\x85\uFFFE\xff", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	e, err := n.Event()
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
	if e, err = (Notification{ID: "ID", Type: NotificationTypeHealth}).Event(); err != nil || e.Type != TypeHealth {
		t.Errorf("got %v, %v, want a health event", e, err)
	}
	for _, name := range []string{"ce_subject", "ce_time"} {
		if v, ok := e.Metadata()[name]; ok {
			t.Errorf("%s is %q, want none", name, v)
		}
	}
	_, err = Notification{}.Event()
	if class, _ := ClassOf(err); err == nil || class != ClassPermanent {
		t.Errorf("without an ID: got %v, want a permanent error", err)
	}
}
