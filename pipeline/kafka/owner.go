package kafka

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// illegalNameChars is what the client ID of a process may not have.
var illegalNameChars = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// memberClientID returns the client ID of this process in the consumer group: it names the host and the
// process, so that others can say which process owns a lane.
func memberClientID() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%s-%d", cluster.ClientID, cmp.Or(illegalNameChars.ReplaceAllString(host, "-"), "host"), os.Getpid())
}

// ownerTimeout is how long Owner waits for the brokers.
const ownerTimeout = 2 * time.Second

// Owner names the process that owns the lane of key: by its instance ID, if it has one, its client ID with
// the host name and the process ID, and its address. It asks the brokers and waits two seconds at most. It
// returns "" where no process owns the lane at the moment, or the brokers do not say which one.
func (t *Transport) Owner(key string) string {
	if !t.ready.Load() {
		return ""
	}
	ctx, cancel := context.WithTimeout(t.ctx, ownerTimeout)
	defer cancel()
	groups, err := client.Do(ctx, func() ([]*sarama.GroupDescription, error) {
		return t.admin.DescribeConsumerGroups([]string{t.cfg.Group})
	}, nil)
	if err != nil {
		t.log.Debug("kafka: the owner of a lane is not known", "error", t.cfg.cause(err))
		return ""
	}
	return ownerOf(groups, t.cfg.Prefix+admin.TopicLanes, int32(client.PartitionOf(key, t.lanes)))
}

// ownerOf names the member of groups to which the partition of topic is assigned.
func ownerOf(groups []*sarama.GroupDescription, topic string, partition int32) string {
	for _, g := range groups {
		for _, m := range g.Members {
			a, err := m.GetMemberAssignment()
			if err != nil || a == nil || !slices.Contains(a.Topics[topic], partition) {
				continue
			}
			name := m.ClientId
			if m.GroupInstanceId != nil && *m.GroupInstanceId != "" {
				name = *m.GroupInstanceId + ", " + name
			}
			return name + " at " + strings.TrimPrefix(m.ClientHost, "/")
		}
	}
	return ""
}
