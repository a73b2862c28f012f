package admin

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// suitableTopics returns topics with suitable settings and replication 3.
func suitableTopics(c Config, specs []Spec) map[string]Standing {
	have := map[string]Standing{}
	for _, spec := range specs {
		have[spec.Name] = Standing{ID: "id-" + spec.Name, Partitions: c.Lanes, replicas: 3, settings: creationSettings(spec, 3)}
	}
	return have
}

func TestInspect(t *testing.T) {
	const at = " --bootstrap-server 127.0.0.1:9092 "
	wired := map[string]flow.Topic{"documents": {}, "requests": {Ephemeral: true}}
	for _, tt := range []struct {
		name     string
		config   func(*Config)
		alter    func(have map[string]Standing)
		lanes    int
		refusals []string // what the refusals say, one each
		warning  []string
		missing  int
	}{
		{name: "as made", lanes: 4},
		{name: "nothing there", alter: func(have map[string]Standing) { clear(have) }, lanes: 4, missing: 4},
		{
			name: "fewer partitions than configured", lanes: 2,
			alter: alterStandings(func(s *Standing) { s.Partitions = 2 }),
		},
		{
			name: "some missing", lanes: 7, missing: 1,
			alter: func(have map[string]Standing) {
				alterStandings(func(s *Standing) { s.Partitions = 7 })(have)
				delete(have, "p.documents")
			},
		},
		{
			name: "state deleted by age", lanes: 4, alter: setSetting("p.state", cleanupPolicy, "delete"),
			refusals: []string{"kafka: topic p.state has cleanup.policy=delete: the last record of each key has to stay, and would be lost after the topic's retention; mend it with: kafka-configs" + at + "--alter --entity-type topics --entity-name p.state --add-config cleanup.policy=compact"},
		},
		{
			name: "state compacted and deleted by age", lanes: 4, alter: setSetting("p.state", cleanupPolicy, "compact,delete"),
			refusals: []string{"kafka: topic p.state has cleanup.policy=compact,delete: the last record of each key has to stay, and would be lost after the topic's retention; mend it with: kafka-configs" + at + "--alter --entity-type topics --entity-name p.state --add-config cleanup.policy=compact"},
		},
		{
			name: "documents compacted", lanes: 4, alter: setSetting("p.documents", cleanupPolicy, "delete,compact"),
			refusals: []string{"kafka: topic p.documents has cleanup.policy=delete,compact: all messages of a key but the last would be lost; mend it with: kafka-configs" + at + "--alter --entity-type topics --entity-name p.documents --add-config cleanup.policy=delete"},
		},
		{
			name: "small messages", lanes: 4, alter: setSetting("p.documents", maxMessageBytes, "1048588"),
			refusals: []string{"kafka: topic p.documents has max.message.bytes=1048588: larger documents would fail for ever; mend it with: kafka-configs" + at + "--alter --entity-type topics --entity-name p.documents --add-config max.message.bytes=6291456"},
		},
		{
			name: "lanes holds nothing", lanes: 4,
			alter: func(have map[string]Standing) {
				setSetting("p.lanes", maxMessageBytes, "1000")(have)
				setSetting("p.lanes", cleanupPolicy, "compact")(have)
			},
		},
		{
			name: "nobody can write", lanes: 4, alter: alterStandings(func(s *Standing) { s.replicas = 1 }, "p.documents"),
			refusals: []string{"kafka: topic p.documents has min.insync.replicas=2: it is kept in 1 brokers, so that nothing could be written; mend it with: kafka-configs" + at + "--alter --entity-type topics --entity-name p.documents --add-config min.insync.replicas=1"},
		},
		{
			name: "one broker acknowledges", lanes: 4, alter: setSetting("p.documents", minInsync, "1"),
			warning: []string{"topic p.documents has min.insync.replicas=1, so that what was acknowledged may be in one broker only; better: kafka-configs" + at + "--alter --entity-type topics --entity-name p.documents --add-config min.insync.replicas=2"},
		},
		{
			name: "kept for an hour", lanes: 4,
			alter:   setSetting("p.documents", retentionMs, "3600000"),
			warning: []string{"topic p.documents has retention.ms=3600000, less than a day: a longer outage would lose messages; better: kafka-configs" + at + "--alter --entity-type topics --entity-name p.documents --add-config retention.ms=604800000"},
		},
		{name: "kept for ever", lanes: 4, alter: setSetting("p.documents", retentionMs, "-1")},
		{
			name: "fewer partitions than the others", lanes: 4, alter: alterStandings(func(s *Standing) { s.Partitions = 3 }, "p.documents"),
			refusals: []string{"kafka: topic p.documents has 3 partitions and the others have 4, but all need the same number; mend it with: kafka-topics" + at + "--alter --topic p.documents --partitions 4"},
		},
		{
			name: "more partitions than the others", lanes: 4, alter: alterStandings(func(s *Standing) { s.Partitions = 6 }, "p.documents"),
			refusals: []string{"kafka: topic p.documents has 6 partitions and the others have 4, but all need the same number, and partitions cannot be removed; " + remedy + ". If no process has ever run with these topics, delete this one instead: kafka-topics" + at + "--delete --topic p.documents"},
		},
		{
			name: "the first topic has more partitions than the others", lanes: 4, alter: alterStandings(func(s *Standing) { s.Partitions = 6 }, "p.state"),
			refusals: []string{"kafka: topic p.state has 6 partitions and the others have 4, but all need the same number, and partitions cannot be removed; " + remedy + ". If no process has ever run with these topics, delete this one instead: kafka-topics" + at + "--delete --topic p.state"},
		},
		{
			name: "missing and not made", lanes: 4, missing: 2, config: func(c *Config) { c.NoCreate = true },
			alter: func(have map[string]Standing) {
				delete(have, "p.documents")
				delete(have, "p.state")
			},
			refusals: []string{"kafka: topics are missing, and making them is switched off: p.state, p.documents; make them with:" +
				"\n  kafka-topics" + at + "--create --topic p.state --partitions 4 --replication-factor 3 --config cleanup.policy=compact --config delete.retention.ms=604800000 --config max.message.bytes=6291456 --config min.insync.replicas=2 --config segment.ms=86400000" +
				"\n  kafka-topics" + at + "--create --topic p.documents --partitions 4 --replication-factor 3 --config cleanup.policy=delete --config max.message.bytes=6291456 --config min.insync.replicas=2 --config retention.ms=604800000"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig([]string{"127.0.0.1:9092"}, "p.")
			c.Lanes = 4
			if tt.config != nil {
				tt.config(&c)
			}
			specs := c.Specs(wired)
			have := suitableTopics(c, specs)
			if tt.alter != nil {
				tt.alter(have)
			}
			got := c.inspect(specs, have)
			if got.lanes != tt.lanes || len(got.missing) != tt.missing {
				t.Errorf("got %d lanes and %d topics missing, want %d and %d", got.lanes, len(got.missing), tt.lanes, tt.missing)
			}
			var refusals []string
			for _, err := range got.problems {
				refusals = append(refusals, err.Error())
			}
			if !slices.Equal(refusals, tt.refusals) || !slices.Equal(got.warnings, tt.warning) {
				t.Errorf("got  %q, %q\nwant %q, %q", refusals, got.warnings, tt.refusals, tt.warning)
			}
		})
	}
}

// alterStandings alters the topics, all of them if none is named.
func alterStandings(alter func(*Standing), topics ...string) func(map[string]Standing) {
	return func(have map[string]Standing) {
		for name, s := range have {
			if len(topics) == 0 || slices.Contains(topics, name) {
				alter(&s)
				have[name] = s
			}
		}
	}
}

func setSetting(topic, setting, value string) func(map[string]Standing) {
	return func(have map[string]Standing) { have[topic].settings[setting] = value }
}

func TestCheckKnown(t *testing.T) {
	now := Info{Lanes: 4, IDs: map[string]string{"p.a": "1", "p.b": "2", "p.new": "3"}}
	b, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var same Info
	if err := json.Unmarshal(b, &same); err != nil {
		t.Fatal(err)
	}
	for _, known := range []Info{{}, same, {Lanes: 4, IDs: map[string]string{"p.a": "1", "p.gone": "9"}}} {
		if err := CheckKnown(known, now); err != nil {
			t.Errorf("%v: got %v, want no error", known, err)
		}
	}
	err = CheckKnown(Info{Lanes: 8, IDs: map[string]string{"p.a": "1", "p.b": "0"}}, now)
	kafkatest.Refused(t, err, "p.a, p.b had 8 partitions at the last run and have 4 now",
		"topic p.b was deleted and made again since the last run (its ID was 0 and is 2)", "start them with another topic_prefix")
}

// TestPartitionsAddedToOneTopic: while a process runs, it says the same of the topic that grew as the next start.
func TestPartitionsAddedToOneTopic(t *testing.T) {
	c := testConfig([]string{"127.0.0.1:9092"}, "p.")
	c.Lanes = 4
	for _, name := range []string{"p.changes", "p.state"} {
		specs := c.Specs(map[string]flow.Topic{flow.TopicChanges: {}, flow.TopicDocuments: {}})
		have := suitableTopics(c, specs)
		known := InfoOf(have, 4)
		if err := c.Compare(known, specs, have); err != nil {
			t.Errorf("before: %v", err)
		}
		alterStandings(func(s *Standing) { s.Partitions = 6 }, name)(have)
		running, start := c.Compare(known, specs, have), c.inspect(specs, have).problems
		if running == nil || len(start) != 1 || running.Error() != start[0].Error() || !strings.Contains(running.Error(), "topic "+name+" has 6 partitions and the others have 4") {
			t.Errorf("%s: got %v, and at the start %v", name, running, start)
		}
	}
	specs := c.Specs(map[string]flow.Topic{flow.TopicChanges: {}})
	have := suitableTopics(c, specs)
	known := InfoOf(have, 4)
	for name, s := range have {
		s.Partitions = 8
		have[name] = s
	}
	kafkatest.Refused(t, c.Compare(known, specs, have), "had 4 partitions at the last run and have 8 now", "start them with another topic_prefix")
}

// TestOutletsHaveTheirOwnPartitions: a topic for other programs has any number, and a compacted one no fewer than there
// are lanes, since the partition of a key never changes.
func TestOutletsHaveTheirOwnPartitions(t *testing.T) {
	c := testConfig([]string{"127.0.0.1:9092"}, "p.")
	c.Lanes = 4
	specs := c.Specs(map[string]flow.Topic{
		flow.TopicChanges: {Outlet: true, Groups: []string{flow.GroupMatch}, Chained: flow.GroupMatch}, flow.TopicCurrent: {Outlet: true, Table: true},
		flow.TopicHealth: {Outlet: true, Groups: []string{flow.GroupHealth}}, flow.TopicDocuments: {},
	})
	for _, tt := range []struct {
		topic      string
		partitions int
		want       string
	}{
		{"p.changes", 1, ""}, {"p.changes", 100, ""}, {"p.pages", 5, ""},
		{"p.pages", 3, "kafka: topic p.pages has 3 partitions and the others have 4, but all need the same number; mend it with: kafka-topics"},
		{"p.health", 5, "kafka: topic p.health has 5 partitions and the others have 4"},
	} {
		have := suitableTopics(c, specs)
		known := InfoOf(have, 4)
		alterStandings(func(s *Standing) { s.Partitions = tt.partitions }, tt.topic)(have)
		got := c.inspect(specs, have)
		err := errors.Join(got.problems...)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) || got.lanes != 4 {
			t.Errorf("%s with %d partitions: got %d lanes, %v", tt.topic, tt.partitions, got.lanes, err)
		}
		if grown := c.Compare(known, specs, have); (grown == nil) != (err == nil) {
			t.Errorf("%s with %d partitions while a process runs: %v", tt.topic, tt.partitions, grown)
		}
	}
}

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
