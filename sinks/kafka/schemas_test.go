package kafka

import (
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
)

// TestSchemaRegistry: a record carries the ID of its schema; while the registry fails, a delivery fails and is tried
// again.
func TestSchemaRegistry(t *testing.T) {
	fake, down := srfake.New(), true
	defer fake.Close()
	fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if down {
			http.Error(w, "{}", http.StatusServiceUnavailable)
		}
		return down
	})
	s, err := New(Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t", SchemaRegistry: cluster.SchemaRegistry{URL: fake.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := pipeline.Notification{ID: "N", URL: "https://example.com/", Type: pipeline.NotificationType}
	if _, err := s.newMessage(t.Context(), n); err == nil || !strings.Contains(err.Error(), "schema registry failed with 503") {
		t.Errorf("while it is down: got %v", err)
	}
	down = false
	m, err := s.newMessage(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Payload
	if len(b) < 5 || b[0] != 0 || !strings.HasPrefix(string(cluster.Unframe(b)), `{"status"`) {
		t.Errorf("got the value %q", b)
	}
	if registered, ok := fake.GetSchema(flow.TypeNotification, 1); !ok || registered.ID != int(b[4]) {
		t.Errorf("the ID is %d, want %d", b[4], registered.ID)
	}
}
