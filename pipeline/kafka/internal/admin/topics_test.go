package admin

import (
	"maps"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
)

func TestSpecs(t *testing.T) {
	c := Config{Prefix: "p."}
	got := c.Specs(map[string]flow.Topic{
		flow.TopicRequests: {Ephemeral: true}, flow.TopicDocuments: {}, flow.TopicDead: {},
		flow.TopicSubscriptions: {}, flow.TopicNotifications: {}, "mine": {},
	})
	week := map[string]string{"cleanup.policy": "delete", "max.message.bytes": "6291456", "retention.ms": "604800000"}
	quarter := map[string]string{"cleanup.policy": "delete", "max.message.bytes": "6291456", "retention.ms": "7776000000"}
	for i, want := range []struct {
		name     string
		settings map[string]string
	}{
		{"p.state", map[string]string{"cleanup.policy": "compact", "max.message.bytes": "6291456", "segment.ms": "86400000", "delete.retention.ms": "604800000"}},
		{"p.lanes", map[string]string{"cleanup.policy": "delete"}},
		{"p.dead", quarter},
		{"p.documents", week},
		{"p.mine", week},
		{"p.notifications", week},
		{"p.requests", map[string]string{"cleanup.policy": "delete", "max.message.bytes": "6291456", "retention.ms": "3600000"}},
		{"p.subscriptions", quarter},
	} {
		if got[i].Name != want.name || !maps.Equal(got[i].Settings, want.settings) {
			t.Errorf("topic %d: got %s with %v, want %s with %v", i, got[i].Name, got[i].Settings, want.name, want.settings)
		}
	}
	if len(got) != 8 {
		t.Errorf("got %d topics, want 8", len(got))
	}
}

func TestCommands(t *testing.T) {
	c := Config{Config: cluster.Config{Brokers: []string{"a:1", "b:2"}, SASL: cluster.SASL{Mechanism: "PLAIN"}}, Prefix: "p."}
	spec := c.Specs(nil)[0]
	want := "kafka-topics --bootstrap-server a:1,b:2 --command-config client.properties --create --topic p.state --partitions 8 --replication-factor 3" +
		" --config cleanup.policy=compact --config delete.retention.ms=604800000 --config max.message.bytes=6291456 --config min.insync.replicas=2 --config segment.ms=86400000"
	if got := c.createCommand(spec, 8, 3); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := c.createCommand(spec, 8, 1); !strings.Contains(got, "--config min.insync.replicas=1 ") {
		t.Errorf("got %s", got)
	}
	want = "kafka-configs --bootstrap-server a:1,b:2 --command-config client.properties --alter --entity-type topics --entity-name p.x --add-config cleanup.policy=compact"
	if got := c.AlterCommand("p.x", "cleanup.policy", "compact"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
