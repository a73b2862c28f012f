package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/test/kafkatest"
)

func TestCheck(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		admin := kafkatest.Admin(t, c.Brokers)
		lines, err := Check(t.Context(), c, testTopics)
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.Mention(t, strings.Join(lines, "\n"), "brokers: 1, at "+c.Brokers[0],
			"topic "+c.Prefix+"state: missing; a start makes it with 3 partitions, replication 1, cleanup.policy=compact, delete.retention.ms=",
			"topic "+c.Prefix+"documents: missing")
		other := c
		other.NoCreate = true
		lines, err = Check(t.Context(), other, testTopics)
		kafkatest.Refused(t, err, "topics are missing", "--create --topic "+c.Prefix+"documents")
		if text := strings.Join(lines, "\n"); strings.Contains(text, "a start makes") {
			t.Errorf("got %s\nwant nothing to be made", text)
		}
		other = c
		other.Replication = 9
		_, err = Check(t.Context(), other, testTopics)
		kafkatest.Refused(t, err, "cannot be kept in 9 brokers, as there are 1: lower replication")
		if have, err := Describe(admin, c.Specs(testTopics)); err != nil || len(have) != 0 {
			t.Fatalf("got %d topics and %v, want none to be made", len(have), err)
		}
		mustEnsure(t, admin, c, c.Specs(testTopics))
		c.Lanes = 9
		lines, err = Check(t.Context(), c, testTopics)
		if err != nil {
			t.Fatal(err)
		}
		kafkatest.Mention(t, strings.Join(lines, "\n"), "topic "+c.Prefix+"state: 3 partitions, replication 1", "the topics keep their 3 partitions")
		alterTopic(t, admin, c.Prefix+"documents", maxMessageBytes, "1000")
		alterTopic(t, admin, c.Prefix+"state", cleanupPolicy, "delete")
		alterTopic(t, admin, c.Prefix+"subscriptions", retentionMs, "1000")
		lines, err = Check(t.Context(), c, testTopics)
		kafkatest.Refused(t, err, c.Prefix+"documents has max.message.bytes=1000", c.Prefix+"state has cleanup.policy=delete")
		kafkatest.Mention(t, strings.Join(lines, "\n"), "warning: topic "+c.Prefix+"subscriptions has retention.ms=1000")
	})
}

func TestCheckEndsWithItsContext(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	silent := kafkatest.Silent(t, func() { cancel(over) })
	if _, err := Check(ctx, testConfig([]string{silent}, "p."), testTopics); !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
}
