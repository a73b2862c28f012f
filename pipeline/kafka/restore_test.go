package kafka

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/test/kafkatest"
)

// handleOne publishes a message for k, handles it, and returns what was kept for k before.
func handleOne(t *testing.T, dir string, c Config) (before string) {
	t.Helper()
	tr, err := start(t.Context(), c, flow.Wiring{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	in := subscribed(t, tr)
	if err := tr.Publish(t.Context(), flow.Message{ID: "1", Topic: "in", Key: "k", Type: "test.v1"}); err != nil {
		t.Fatal(err)
	}
	m := <-in
	tx, _ := flow.TxFrom(m.Context())
	v, _, err := tx.State("k").Get("n")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.State("k").Set("n", []byte("of "+c.Prefix)); err != nil {
		t.Fatal(err)
	}
	m.Ack()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// TestCopyOfOtherTopics: what a directory holds of topics with another prefix is not taken for
// that of the present ones: neither state nor positions.
func TestCopyOfOtherTopics(t *testing.T) {
	t.Parallel()
	a := testConfig(kafkatest.Start(t))
	a.Topics = movedTopics
	b, dir := a, t.TempDir()
	b.Prefix, b.Group = "b.", "b"
	for _, step := range []struct {
		c    Config
		want string
	}{{a, ""}, {a, "of " + a.Prefix}, {b, ""}, {b, "of b."}, {a, "of " + a.Prefix}} {
		if got := handleOne(t, dir, step.c); got != step.want {
			t.Errorf("with %s: got %q, want %q", step.c.Prefix, got, step.want)
		}
	}
}

// TestCopyRefused: a copy with another number of lanes, or one that is damaged.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	a := testConfig(kafkatest.Start(t))
	a.Topics = movedTopics
	top := t.TempDir()
	handleOne(t, top, a)
	dir := filepath.Join(top, "kafka")
	b := a
	b.Prefix, b.Group, b.Lanes = "b.", "b", 4
	if _, err := start(t.Context(), b, flow.Wiring{Dir: top}); err == nil || !strings.Contains(err.Error(), "the copy of the state in "+dir+" has 3 lanes and the topics have 4: remove that directory") {
		t.Errorf("got %v", err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	if err := os.Truncate(manifests[len(manifests)-1], 3); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t.Context(), a, flow.Wiring{Dir: top}); err == nil || !strings.Contains(err.Error(), "the store in "+dir+" is damaged") {
		t.Errorf("got %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := handleOne(t, top, a); got != "of "+a.Prefix {
		t.Errorf("without its copy: got %q", got)
	}
}

// TestTopicMadeAgain: a topic that was deleted and made again between two runs is refused.
func TestTopicMadeAgain(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	c.Topics = movedTopics
	handleOne(t, "", c)
	if err := testAdmin(t, c).DeleteTopic(c.Prefix + "in"); err != nil {
		t.Fatal(err)
	}
	if text := brokenText(t, c); !strings.Contains(text, "topic "+c.Prefix+"in was deleted and made again since the last run") || !strings.Contains(text, "state export DIR") {
		t.Errorf("got %s", text)
	}
	// Its state can be saved all the same.
	if e, left, err := exportOf(t, c, false); err != nil || len(left) > 0 || len(all(t, e)) != 1 {
		t.Errorf("got %v, %v", left, err)
	}
}

// TestStateOfANewerVersion is refused.
func TestStateOfANewerVersion(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	c.Topics = movedTopics
	handleOne(t, "", c)
	conf, err := c.admin().ProducerConfig()
	if err != nil {
		t.Fatal(err)
	}
	p, err := sarama.NewSyncProducer(c.Brokers, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	newer := &sarama.ProducerMessage{Topic: c.Prefix + admin.TopicState, Key: sarama.StringEncoder("\x08s"), Value: sarama.StringEncoder("x")}
	if _, _, err := p.SendMessage(newer); err != nil {
		t.Fatal(err)
	}
	const want = "the state topic was written by another version of Vokter (format 8, this one knows 7): use that version"
	if text := brokenText(t, c); !strings.Contains(text, want) {
		t.Errorf("got %s", text)
	}
	if _, _, err := exportOf(t, c, false); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("export: got %v", err)
	}
}

// brokenText is why a Transport of c cannot go on.
func brokenText(t *testing.T, c Config) string {
	t.Helper()
	broken := make(chan error, 16)
	tr, err := start(t.Context(), c, flow.Wiring{OnBroken: func(err error) {
		select {
		case broken <- err:
		default:
		}
	}})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = tr.Close() }()
	select {
	case err := <-broken:
		return err.Error()
	case <-time.After(20 * time.Second):
		return "nothing was reported"
	}
}

// TestStateLostWhileBrokersMove has a broker that cannot say at first whether state was lost:
// the topic of the state is not made before that is known.
func TestStateLostWhileBrokersMove(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Cluster(t)
	c := testConfig(cluster.ListenAddrs())
	c.Topics = map[string]flow.Topic{flow.TopicChanges: {}}
	tr, err := start(t.Context(), c, flow.Wiring{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Publish(t.Context(), flow.Message{ID: "1", Topic: flow.TopicChanges, Key: "k", Type: "test.v1"}); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testAdmin(t, c).DeleteTopic(c.Prefix + admin.TopicState); err != nil {
		t.Fatal(err)
	}
	asked := refuseOffsets(cluster, 2) // sarama asks twice each time
	tr, err = start(t.Context(), c, flow.Wiring{})
	if err == nil {
		_ = tr.Close()
	}
	if err == nil || !strings.Contains(err.Error(), admin.TopicState+" is missing or empty") {
		t.Errorf("Open: %v, want a refusal that names the topic", err)
	}
	if n := asked.Load(); n < 3 {
		t.Errorf("the brokers were asked %d times only", n)
	}
}
