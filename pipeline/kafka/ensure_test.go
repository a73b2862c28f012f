package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/vokter/vokter/pipeline/flow"
)

var wired = map[string]flow.Topic{
	"documents": {Groups: []string{"index"}}, "requests": {Groups: []string{"fetch"}, Ephemeral: true}, "subscriptions": {},
}

// What is made has the settings that we ask for, and the next start is content with it.
func TestEnsureMakesTopics(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := testAdmin(t, c)
		specs := c.specs(wired)
		info, err := ensureTopics(t.Context(), admin, c, specs)
		if err != nil {
			t.Fatal(err)
		}
		if info.Lanes != 3 || len(info.IDs) != len(specs) {
			t.Errorf("got %d lanes and %d IDs, want 3 and %d", info.Lanes, len(info.IDs), len(specs))
		}
		have, err := describe(admin, specs)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range specs {
			s := have[spec.Name]
			if s.partitions != 3 || s.leaderless != 0 || s.id != info.IDs[spec.Name] {
				t.Errorf("%s: got %d partitions, %d without leader, ID %s (%s told)", spec.Name, s.partitions, s.leaderless, s.id, info.IDs[spec.Name])
			}
			got := settingsOf(t, admin, spec.Name)
			for name, want := range spec.Settings {
				if got[name] != want {
					t.Errorf("%s: got %s=%s, want %s", spec.Name, name, got[name], want)
				}
			}
		}
		c.Lanes, c.CreateTopics = 8, new(false) // what stands counts
		again, err := ensureTopics(t.Context(), admin, c, specs)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkKnown(info, again); err != nil || again.Lanes != 3 {
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

func TestEnsureRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := testAdmin(t, c)
		specs := c.specs(wired)
		if _, err := ensureTopics(t.Context(), admin, c, specs); err != nil {
			t.Fatal(err)
		}
		alter(t, admin, c.Prefix+"state", cleanupPolicy, "delete")
		alter(t, admin, c.Prefix+"documents", maxMessageBytes, "1000000")
		if err := admin.CreatePartitions(c.Prefix+"requests", 4, nil, false); err != nil {
			t.Fatal(err)
		}
		until(t, admin, specs, func(have map[string]standing) bool { return have[c.Prefix+"requests"].partitions == 4 })
		_, err := ensureTopics(t.Context(), admin, c, specs)
		if err == nil {
			t.Fatal("got no error")
		}
		mention(t, err.Error(), "state has cleanup.policy=delete", "documents has max.message.bytes=1000000",
			"requests has 4 partitions and the others have 3", "--entity-name "+c.Prefix+"documents --add-config max.message.bytes=6291456")
		if away(err) {
			t.Errorf("%v counts as what may pass", err)
		}
	})
}

func alter(t *testing.T, admin sarama.ClusterAdmin, topic, setting, value string) {
	t.Helper()
	err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		setting: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	until(t, admin, []topicSpec{{Name: topic}}, func(have map[string]standing) bool { return have[topic].settings[setting] == value })
}

// until waits for what a broker learns of the controller a little later.
func until(t *testing.T, admin sarama.ClusterAdmin, specs []topicSpec, good func(have map[string]standing) bool) {
	t.Helper()
	for {
		have, err := describe(admin, specs)
		if err != nil {
			t.Fatal(err)
		}
		if good(have) {
			return
		}
	}
}

func TestEnsureMakesNothingUnasked(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		c.CreateTopics = new(false)
		admin := testAdmin(t, c)
		_, err := ensureTopics(t.Context(), admin, c, c.specs(wired))
		if err == nil {
			t.Fatal("got no error")
		}
		mention(t, err.Error(), c.Prefix+"state, "+c.Prefix+"lanes, "+c.Prefix+"documents", "--create --topic "+c.Prefix+"documents --partitions 3")
		if have, err := describe(admin, c.specs(wired)); err != nil || len(have) != 0 {
			t.Errorf("got %d topics and %v, want none", len(have), err)
		}
	})
}

// What stands gives its number of partitions to what is made beside it.
func TestEnsureFollowsWhatStands(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := testAdmin(t, c)
		settings := map[string]*string{}
		for k, v := range c.specs(wired)[2].Settings {
			settings[k] = &v
		}
		if err := admin.CreateTopic(c.Prefix+"documents", &sarama.TopicDetail{NumPartitions: 5, ReplicationFactor: 1, ConfigEntries: settings}, false); err != nil {
			t.Fatal(err)
		}
		info, err := ensureTopics(t.Context(), admin, c, c.specs(wired))
		if err != nil || info.Lanes != 5 {
			t.Errorf("got %d lanes and %v, want 5", info.Lanes, err)
		}
	})
}

// Processes that start at once agree, though they are configured differently.
func TestEnsureByManyAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		var wg sync.WaitGroup
		infos, errs := make([]topicInfo, 4), make([]error, 4)
		for i := range infos {
			admin, c := testAdmin(t, c), c
			c.Lanes = i + 1
			wg.Go(func() { infos[i], errs[i] = ensureTopics(t.Context(), admin, c, c.specs(wired)) })
		}
		wg.Wait()
		for i := range infos {
			if errs[i] != nil {
				t.Errorf("process %d: %v", i, errs[i])
			} else if err := checkKnown(infos[0], infos[i]); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
	})
}

// meddler is an admin with others beside it.
type meddler struct {
	sarama.ClusterAdmin
	beforeCreate  func(topic string) // before a topic is made
	afterDescribe func(topics []*sarama.TopicMetadata)
}

func (m *meddler) CreateTopic(topic string, detail *sarama.TopicDetail, rehearse bool) error {
	if m.beforeCreate != nil && !rehearse {
		m.beforeCreate(topic)
	}
	return m.ClusterAdmin.CreateTopic(topic, detail, rehearse)
}

func (m *meddler) DescribeTopics(names []string) ([]*sarama.TopicMetadata, error) {
	topics, err := m.ClusterAdmin.DescribeTopics(names)
	if m.afterDescribe != nil {
		m.afterDescribe(topics)
	}
	return topics, err
}

// Another process makes the first topic between our rehearsal and us.
func TestEnsureFollowsWhoWasQuicker(t *testing.T) {
	c := testConfig(startFake(t))
	admin := &meddler{ClusterAdmin: testAdmin(t, c)}
	specs := c.specs(wired)
	admin.beforeCreate = func(topic string) {
		admin.beforeCreate = nil
		if _, err := ensureTopics(t.Context(), testAdmin(t, c), Config{Prefix: c.Prefix, Lanes: 5}.withDefaults(), specs[:1]); err != nil {
			t.Error(err)
		}
	}
	info, err := ensureTopics(t.Context(), admin, c, specs)
	if err != nil || info.Lanes != 5 {
		t.Errorf("got %d lanes and %v, want 5", info.Lanes, err)
	}
}

// Right after a topic was made brokers may not know its ID.
func TestEnsureWaitsForIDs(t *testing.T) {
	c := testConfig(startFake(t))
	admin := &meddler{ClusterAdmin: testAdmin(t, c)}
	early := 2
	admin.afterDescribe = func(topics []*sarama.TopicMetadata) {
		for _, topic := range topics {
			if errors.Is(topic.Err, sarama.ErrNoError) && early > 0 {
				early--
				topic.Uuid = sarama.Uuid{}
			}
		}
	}
	specs := c.specs(wired)
	info, err := ensureTopics(t.Context(), admin, c, specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		if id := info.IDs[spec.Name]; id == "" || id == (sarama.Uuid{}).String() {
			t.Errorf("%s: got ID %q", spec.Name, id)
		}
	}
}

func TestEnsureSeesThatATopicIsAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := testAdmin(t, c)
		specs := c.specs(wired)
		before, err := ensureTopics(t.Context(), admin, c, specs)
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.DeleteTopic(c.Prefix + "documents"); err != nil {
			t.Fatal(err)
		}
		until(t, admin, specs, func(have map[string]standing) bool { return have[c.Prefix+"documents"].id == "" })
		now, err := ensureTopics(t.Context(), admin, c, specs)
		if err != nil {
			t.Fatal(err)
		}
		err = checkKnown(before, now)
		if err == nil {
			t.Fatal("got no error")
		}
		mention(t, err.Error(), "topic "+c.Prefix+"documents was deleted and made again")
	})
}

func TestEnsureGivesUpWithItsContext(t *testing.T) {
	c := testConfig(startFake(t))
	admin := testAdmin(t, c)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := ensureTopics(ctx, admin, c, c.specs(wired)); !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
}

func TestReplication(t *testing.T) {
	for _, tt := range []struct {
		brokers, asked, want int
		inSync               string
	}{{1, 0, 1, "1"}, {2, 0, 2, "1"}, {3, 0, 3, "2"}, {5, 0, 3, "2"}, {3, 1, 1, "1"}} {
		c := testConfig(startFake(t, kfake.NumBrokers(tt.brokers)))
		c.Replication = tt.asked
		admin := testAdmin(t, c)
		if _, err := ensureTopics(t.Context(), admin, c, c.specs(wired)); err != nil {
			t.Fatal(err)
		}
		have, err := describe(admin, c.specs(wired))
		if err != nil {
			t.Fatal(err)
		}
		if got := have[c.Prefix+"state"]; got.replicas != tt.want || got.settings[minInsync] != tt.inSync {
			t.Errorf("%d brokers, %d asked: got replication %d, in sync %s; want %d, %s", tt.brokers, tt.asked, got.replicas, got.settings[minInsync], tt.want, tt.inSync)
		}
	}
	c := testConfig(startFake(t))
	c.Replication = 3
	_, err := ensureTopics(t.Context(), testAdmin(t, c), c, c.specs(wired))
	if err == nil {
		t.Fatal("three replicas in one broker: got no error")
	}
	mention(t, err.Error(), "cannot be kept in 3 brokers: lower replication")
}

func TestAffected(t *testing.T) {
	for level, want := range map[int16]bool{27: false, 28: true, 29: true, 30: true, 31: false} {
		if got := affected(level); got != want {
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
		c := testConfig(startFake(t, kfake.MaxVersions(tt.version)))
		if got := brokerWarning(testAdmin(t, c), tt.alone); len(got) != tt.want {
			t.Errorf("%s, alone %t: got %q, want %d warnings", tt.version.VersionGuess(), tt.alone, got, tt.want)
		}
	}
}
