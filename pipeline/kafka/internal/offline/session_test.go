package offline

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/test/kafkatest"
)

// connectedSession returns a session whose topics were made.
func connectedSession(t *testing.T, brokers []string, prefix string) *session {
	t.Helper()
	s := &session{Config: Config{
		Config: admin.Config{
			Config: cluster.Config{Brokers: brokers}, Prefix: prefix, Group: prefix + "g", Lanes: 3, Logger: slog.New(slog.DiscardHandler),
		},
		Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}}, Now: time.Now,
	}}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestUntouched: a process that takes lanes after the session did is noticed, though it has ended
// since.
func TestUntouched(t *testing.T) {
	brokers, prefix := kafkatest.Start(t), kafkatest.Prefix()
	s := connectedSession(t, brokers, prefix)
	if err := s.takeLanes(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.checkUntouched(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := connectedSession(t, brokers, prefix)
	if err := other.takeLanes(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.checkUntouched(t.Context()); err == nil || !strings.Contains(err.Error(), "was started meanwhile") {
		t.Errorf("got %v", err)
	}
}

// TestAgreed: while the brokers do not agree on leaders they are asked again; other errors are
// returned at once.
func TestAgreed(t *testing.T) {
	s := connectedSession(t, kafkatest.Start(t), kafkatest.Prefix())
	answers := []error{sarama.ErrNotLeaderForPartition, sarama.ErrUnknownTopicOrPartition, sarama.ErrTopicAuthorizationFailed, nil}
	err := s.retryForLeader(t.Context(), s.Prefix+"in", func() error {
		answer := answers[0]
		answers = answers[1:]
		return answer
	})
	if !errors.Is(err, sarama.ErrTopicAuthorizationFailed) || len(answers) != 1 {
		t.Errorf("got %v with %d answers left", err, len(answers))
	}
}
