package admin

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// MissingRights says which rights that a Transport with topics needs the brokers deny this
// process; empty: none. Topics that do not stand are left out; of
// transactional IDs brokers only tell whether they may be seen. client must not
// retry by itself: it would retry what it may not see for minutes.
func (c Config) MissingRights(client sarama.Client, topics map[string]flow.Topic) (string, error) {
	missing, err := c.missingOnTopics(client, topics)
	if err != nil {
		return "", err
	}
	readable, err := c.groupReadable(client)
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

func (c Config) missingOnTopics(client sarama.Client, topics map[string]flow.Topic) ([]string, error) {
	read := []string{c.Prefix + TopicState, c.Prefix + TopicLanes}
	write := []string{c.Prefix + TopicState}
	for name, topic := range topics {
		write = append(write, c.Prefix+name)
		if len(topic.Groups) > 0 {
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

// groupReadable reports whether this process may be a member of the consumer group.
func (c Config) groupReadable(client sarama.Client) (bool, error) {
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

// allows reports whether op is among ops, as brokers tell them; some tell nothing.
func allows(ops int32, op sarama.AclOperation) bool {
	return ops == math.MinInt32 || ops&(1<<op) != 0
}
