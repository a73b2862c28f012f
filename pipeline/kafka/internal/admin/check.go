package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// checkTimeout is how long Check takes at most.
const checkTimeout = 5 * time.Second

var errCheckTimeout = fmt.Errorf("kafka: the brokers did not answer within %v", checkTimeout)

// Check compares the cluster with the needs of a Transport with topics (names without the
// prefix), and changes nothing. See kafka.Check.
func Check(ctx context.Context, c Config, topics map[string]flow.Topic) ([]string, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Metadata.Retry.Max, conf.Admin.Retry.Max = 0, 1
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, errCheckTimeout)
	defer cancel()
	connected, err := c.Config.Connect(ctx, conf)
	if err != nil {
		return nil, err
	}
	defer connected.Close()
	return client.Do(ctx, func() ([]string, error) { return c.checkCluster(connected, topics) }, nil)
}

func (c Config) checkCluster(client sarama.Client, topics map[string]flow.Topic) ([]string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	brokers, _, err := admin.DescribeCluster()
	if err != nil {
		return nil, fmt.Errorf("kafka: how many brokers there are: %w", err)
	}
	specs := c.Specs(topics)
	have, err := Describe(admin, specs)
	if err != nil {
		return nil, err
	}
	found := c.inspect(specs, have)
	lines := []string{fmt.Sprintf("brokers: %d, at %s", len(brokers), addresses(brokers))}
	for _, spec := range specs {
		if s, ok := have[spec.Name]; ok {
			lines = append(lines, fmt.Sprintf("topic %s: %d partitions, replication %d", spec.Name, s.Partitions, s.replicas))
		}
	}
	alone := hasSingleReplica(have)
	if !c.NoCreate && len(found.missing) > 0 {
		replicas, err := c.replicationFactor(admin)
		if err != nil {
			return nil, err
		}
		for _, spec := range found.missing {
			lines = append(lines, fmt.Sprintf("topic %s: missing; a start makes it with %d partitions, replication %d, %s",
				spec.Name, found.lanes, replicas, strings.Join(settingLines(spec, replicas), ", ")))
		}
		alone = alone || replicas == 1
		if replicas > len(brokers) {
			found.problems = append(found.problems, fmt.Errorf("kafka: topics cannot be kept in %d brokers, as there are %d: lower replication", replicas, len(brokers)))
		}
	}
	if len(have) > 0 && found.lanes != c.Lanes {
		lines = append(lines, fmt.Sprintf("the topics keep their %d partitions; Partitions: %d counts where none of them stands", found.lanes, c.Lanes))
	}
	warnings := append(found.warnings, brokerWarning(admin, alone)...)
	// The group is not checked: asking for it makes new brokers create their internal topics.
	if missing, err := c.missingTopicRights(client, topics); err == nil && len(missing) > 0 {
		warnings = append(warnings, "rights are missing: allow "+strings.Join(missing, "; "))
	}
	if w := c.OpenPassword(); w != "" {
		warnings = append(warnings, w)
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w)
	}
	return lines, errors.Join(found.problems...)
}

func addresses(brokers []*sarama.Broker) string {
	var all []string
	for _, b := range brokers {
		all = append(all, b.Addr())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// settingLines lists the settings of a new topic as name=value, in order.
func settingLines(spec Spec, replicas int) []string {
	var all []string
	for name, value := range creationSettings(spec, replicas) {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// MissingRights names the rights that a Transport with topics needs and that the brokers deny to
// this process; empty if there are none. Topics that do not exist are skipped. For transactional
// IDs the brokers only say whether they may be described. client must not retry: it would retry
// denied requests for minutes.
func (c Config) MissingRights(client sarama.Client, topics map[string]flow.Topic) (string, error) {
	missing, err := c.missingTopicRights(client, topics)
	if err != nil {
		return "", err
	}
	readable, err := c.canReadGroup(client)
	if err != nil {
		return "", err
	}
	if !readable {
		missing = append(missing, "Read on the group "+c.Group)
	}
	_, err = client.TransactionCoordinator(fmt.Sprintf("%s-%d", c.Group, 0))
	if errors.Is(err, sarama.ErrTransactionalIDAuthorizationFailed) {
		missing = append(missing, fmt.Sprintf("Write on the transactional IDs that begin with %s-", c.Group))
	} else if err != nil {
		return "", err
	}
	return strings.Join(missing, "; "), nil
}

func (c Config) missingTopicRights(client sarama.Client, topics map[string]flow.Topic) ([]string, error) {
	read := []string{c.Prefix + TopicState, c.Prefix + TopicLanes}
	write := []string{c.Prefix + TopicState}
	for name, topic := range topics {
		if !topic.HasLog() {
			continue
		}
		write = append(write, c.Prefix+name)
		if slices.ContainsFunc(topic.Groups, topic.ReadBy) {
			read = append(read, c.Prefix+name)
		}
	}
	broker, err := client.Controller()
	if err != nil {
		return nil, err
	}
	req := sarama.NewMetadataRequest(client.Config().Version, append(slices.Clone(write), c.Prefix+TopicLanes))
	req.IncludeTopicAuthorizedOperations = true
	answer, err := broker.GetMetadata(req)
	if err != nil {
		return nil, err
	}
	may := make(map[string]int32)
	for _, t := range answer.Topics {
		switch {
		case errors.Is(t.Err, sarama.ErrTopicAuthorizationFailed):
			may[t.Name] = 0
		case errors.Is(t.Err, sarama.ErrNoError):
			may[t.Name] = t.TopicAuthorizedOperations
		}
	}
	var missing []string
	for _, need := range []struct {
		op     sarama.AclOperation
		topics []string
	}{{sarama.AclOperationRead, read}, {sarama.AclOperationWrite, write}} {
		lack := slices.DeleteFunc(need.topics, func(topic string) bool {
			ops, stands := may[topic]
			return !stands || allows(ops, need.op)
		})
		if slices.Sort(lack); len(lack) == 1 {
			missing = append(missing, fmt.Sprintf("%s on the topic %s", need.op.String(), lack[0]))
		} else if len(lack) > 1 {
			missing = append(missing, fmt.Sprintf("%s on the topics %s", need.op.String(), strings.Join(lack, ", ")))
		}
	}
	return missing, nil
}

// canReadGroup reports whether this process may be a member of the consumer group.
func (c Config) canReadGroup(client sarama.Client) (bool, error) {
	broker, err := client.Coordinator(c.Group)
	if errors.Is(err, sarama.ErrGroupAuthorizationFailed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	answer, err := broker.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 4, Groups: []string{c.Group}, IncludeAuthorizedOperations: true})
	if err != nil {
		return false, err
	}
	for _, g := range answer.Groups {
		switch {
		case errors.Is(g.Err, sarama.ErrGroupAuthorizationFailed):
			return false, nil
		case !errors.Is(g.Err, sarama.ErrNoError):
			return false, g.Err
		case !allows(g.AuthorizedOperations, sarama.AclOperationRead):
			return false, nil
		}
	}
	return true, nil
}

// allows reports whether op is in ops, the brokers' bit set of allowed operations. Some brokers do
// not send one; then op counts as allowed.
func allows(ops int32, op sarama.AclOperation) bool {
	return ops == math.MinInt32 || ops&(1<<op) != 0
}
