package admin

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/test/kafkatest"
)

var testTopics = map[string]flow.Topic{
	"documents": {Groups: []string{"index"}}, "requests": {Groups: []string{"fetch"}, Ephemeral: true}, "subscriptions": {},
}

// testConfig is a Config for three lanes.
func testConfig(brokers []string, prefix string) Config {
	return Config{
		Config: cluster.Config{Brokers: brokers}, Prefix: prefix, Group: strings.TrimSuffix(prefix, "."), Lanes: 3, Logger: slog.New(slog.DiscardHandler),
	}
}

// onBoth runs test on a fake cluster and on a real one.
func onBoth(t *testing.T, test func(t *testing.T, c Config)) {
	kafkatest.OnBoth(t, func(t *testing.T, brokers []string, prefix string) { test(t, testConfig(brokers, prefix)) })
}

// mustEnsure is Ensure, which must not fail.
func mustEnsure(t *testing.T, admin sarama.ClusterAdmin, c Config, specs []Spec) Info {
	t.Helper()
	info, err := Ensure(t.Context(), admin, c, specs)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// mustDescribe is Describe, which must not fail.
func mustDescribe(t *testing.T, admin sarama.ClusterAdmin, specs []Spec) map[string]Standing {
	t.Helper()
	have, err := Describe(admin, specs)
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// What is made has the settings that we ask for, and the next start is content with it.
func TestEnsureMakesTopics(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := kafkatest.Admin(t, c.Brokers)
		specs := c.Specs(testTopics)
		info := mustEnsure(t, admin, c, specs)
		if info.Lanes != 3 || len(info.IDs) != len(specs) {
			t.Errorf("got %d lanes and %d IDs, want 3 and %d", info.Lanes, len(info.IDs), len(specs))
		}
		have := mustDescribe(t, admin, specs)
		for _, spec := range specs {
			s := have[spec.Name]
			if s.Partitions != 3 || s.leaderless != 0 || s.ID != info.IDs[spec.Name] {
				t.Errorf("%s: got %d partitions, %d without leader, ID %s (%s told)", spec.Name, s.Partitions, s.leaderless, s.ID, info.IDs[spec.Name])
			}
			got := settingsOf(t, admin, spec.Name)
			for name, want := range spec.Settings {
				if got[name] != want {
					t.Errorf("%s: got %s=%s, want %s", spec.Name, name, got[name], want)
				}
			}
		}
		c.Lanes, c.NoCreate = 8, true // what stands counts
		again := mustEnsure(t, admin, c, specs)
		if err := CheckKnown(info, again); err != nil || again.Lanes != 3 {
			t.Errorf("got %v with %d lanes, want the topics of before with 3", err, again.Lanes)
		}
	})
}

func settingsOf(t *testing.T, admin sarama.ClusterAdmin, topic string) map[string]string {
	t.Helper()
	all, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}, sarama.DescribeConfigsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, e := range all[0].Configs {
		settings[e.Name] = e.Value
	}
	return settings
}

func alterTopic(t *testing.T, admin sarama.ClusterAdmin, topic, setting, value string) {
	t.Helper()
	err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		setting: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, admin, []Spec{{Name: topic}}, func(have map[string]Standing) bool { return have[topic].settings[setting] == value })
}

// waitUntil waits for what a broker learns of the controller a little later.
func waitUntil(t *testing.T, admin sarama.ClusterAdmin, specs []Spec, good func(have map[string]Standing) bool) {
	t.Helper()
	for !good(mustDescribe(t, admin, specs)) {
		time.Sleep(time.Millisecond)
	}
}

func TestEnsureMakesNothingUnasked(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		c.NoCreate = true
		admin := kafkatest.Admin(t, c.Brokers)
		_, err := Ensure(t.Context(), admin, c, c.Specs(testTopics))
		kafkatest.Refused(t, err, c.Prefix+"state, "+c.Prefix+"lanes, "+c.Prefix+"documents", "--create --topic "+c.Prefix+"documents --partitions 3")
		if have, err := Describe(admin, c.Specs(testTopics)); err != nil || len(have) != 0 {
			t.Errorf("got %d topics and %v, want none", len(have), err)
		}
	})
}

// Processes that start at once agree, though they are configured differently.
func TestEnsureByManyAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		var wg sync.WaitGroup
		infos, errs := make([]Info, 4), make([]error, 4)
		for i := range infos {
			admin, c := kafkatest.Admin(t, c.Brokers), c
			c.Lanes = i + 1
			wg.Go(func() { infos[i], errs[i] = Ensure(t.Context(), admin, c, c.Specs(testTopics)) })
		}
		wg.Wait()
		for i := range infos {
			if errs[i] != nil {
				t.Errorf("process %d: %v", i, errs[i])
			} else if err := CheckKnown(infos[0], infos[i]); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
	})
}

// racingAdmin is an admin of a cluster in which others create topics at the same time.
type racingAdmin struct {
	sarama.ClusterAdmin
	beforeCreate  func(topic string) // before a topic is made
	afterDescribe func(topics []*sarama.TopicMetadata)
}

func (m *racingAdmin) CreateTopic(topic string, detail *sarama.TopicDetail, rehearse bool) error {
	if m.beforeCreate != nil && !rehearse {
		m.beforeCreate(topic)
	}
	return m.ClusterAdmin.CreateTopic(topic, detail, rehearse)
}

func (m *racingAdmin) DescribeTopics(names []string) ([]*sarama.TopicMetadata, error) {
	topics, err := m.ClusterAdmin.DescribeTopics(names)
	if m.afterDescribe != nil {
		m.afterDescribe(topics)
	}
	return topics, err
}

// Another process makes the first topic between our rehearsal and us.
func TestEnsureFollowsWhoWasQuicker(t *testing.T) {
	c := testConfig(kafkatest.Start(t), kafkatest.Prefix())
	admin := &racingAdmin{ClusterAdmin: kafkatest.Admin(t, c.Brokers)}
	specs := c.Specs(testTopics)
	admin.beforeCreate = func(topic string) {
		admin.beforeCreate = nil
		fiveLanes := c
		fiveLanes.Lanes = 5
		if _, err := Ensure(t.Context(), kafkatest.Admin(t, c.Brokers), fiveLanes, specs[:1]); err != nil {
			t.Error(err)
		}
	}
	info, err := Ensure(t.Context(), admin, c, specs)
	if err != nil || info.Lanes != 5 {
		t.Errorf("got %d lanes and %v, want 5", info.Lanes, err)
	}
}

// Right after a topic was made brokers may not know its ID.
func TestEnsureWaitsForIDs(t *testing.T) {
	c := testConfig(kafkatest.Start(t), kafkatest.Prefix())
	admin := &racingAdmin{ClusterAdmin: kafkatest.Admin(t, c.Brokers)}
	early := 2
	admin.afterDescribe = func(topics []*sarama.TopicMetadata) {
		for _, topic := range topics {
			if errors.Is(topic.Err, sarama.ErrNoError) && early > 0 {
				early--
				topic.Uuid = sarama.Uuid{}
			}
		}
	}
	specs := c.Specs(testTopics)
	info := mustEnsure(t, admin, c, specs)
	for _, spec := range specs {
		if id := info.IDs[spec.Name]; id == "" || id == (sarama.Uuid{}).String() {
			t.Errorf("%s: got ID %q", spec.Name, id)
		}
	}
}

func TestEnsureGivesUpWithItsContext(t *testing.T) {
	c := testConfig(kafkatest.Start(t), kafkatest.Prefix())
	admin := kafkatest.Admin(t, c.Brokers)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := Ensure(ctx, admin, c, c.Specs(testTopics)); !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
}

func TestReplication(t *testing.T) {
	for _, tt := range []struct {
		brokers, asked, want int
		inSync               string
	}{{1, 0, 1, "1"}, {2, 0, 2, "1"}, {3, 0, 3, "2"}, {5, 0, 3, "2"}, {3, 1, 1, "1"}} {
		c := testConfig(kafkatest.Start(t, kfake.NumBrokers(tt.brokers)), kafkatest.Prefix())
		c.Replication = tt.asked
		admin := kafkatest.Admin(t, c.Brokers)
		mustEnsure(t, admin, c, c.Specs(testTopics))
		have := mustDescribe(t, admin, c.Specs(testTopics))
		if got := have[c.Prefix+"state"]; got.replicas != tt.want || got.settings[minInsync] != tt.inSync {
			t.Errorf("%d brokers, %d asked: got replication %d, in sync %s; want %d, %s", tt.brokers, tt.asked, got.replicas, got.settings[minInsync], tt.want, tt.inSync)
		}
	}
	c := testConfig(kafkatest.Start(t), kafkatest.Prefix())
	c.Replication = 3
	_, err := Ensure(t.Context(), kafkatest.Admin(t, c.Brokers), c, c.Specs(testTopics))
	kafkatest.Refused(t, err, "cannot be kept in 3 brokers: lower replication")
}

func TestAffected(t *testing.T) {
	for level, want := range map[int16]bool{27: false, 28: true, 29: true, 30: true, 31: false} {
		if got := isAffected(level); got != want {
			t.Errorf("level %d: got %t, want %t", level, got, want)
		}
	}
}

// Only a single broker of 4.2 and 4.3 is warned of.
func TestBrokerWarning(t *testing.T) {
	for _, tt := range []struct {
		version *kversion.Versions
		alone   bool
		want    int
	}{
		{kversion.V4_1_0(), true, 0}, {kversion.V4_2_0(), true, 1}, {kversion.V4_3_0(), true, 1}, {kversion.V4_3_0(), false, 0},
	} {
		c := testConfig(kafkatest.Start(t, kfake.MaxVersions(tt.version)), kafkatest.Prefix())
		if got := brokerWarning(kafkatest.Admin(t, c.Brokers), tt.alone); len(got) != tt.want {
			t.Errorf("%s, alone %t: got %q, want %d warnings", tt.version.VersionGuess(), tt.alone, got, tt.want)
		}
	}
}
