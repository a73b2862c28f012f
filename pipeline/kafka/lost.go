package kafka

import (
	"fmt"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// stateLost refuses topics of which only the state is missing: what was told would be told
// again, and what stands in the other topics means nothing without it. Only transactions that
// also write state write to these topics.
func (t *Transport) stateLost() error {
	names := []string{topicState, flow.TopicSubscriptions, flow.TopicChanges}
	var specs []topicSpec
	for _, name := range names {
		specs = append(specs, topicSpec{Name: t.cfg.Prefix + name})
	}
	have, err := describe(t.admin, specs)
	if err != nil {
		return err
	}
	for i, name := range names {
		s, ok := have[t.cfg.Prefix+name]
		if !ok {
			continue
		}
		holds, err := t.holds(t.cfg.Prefix+name, s.partitions)
		switch {
		case err != nil:
			return err
		case i == 0 && holds:
			return nil
		case holds:
			return fmt.Errorf("kafka: the topic %s is missing or empty, and %s is not: what was known of the pages is lost, and what stands in the other topics means nothing without it; "+
				"choose another topic_prefix, to begin anew or with a state import, or delete all topics that begin with %s",
				t.cfg.Prefix+topicState, t.cfg.Prefix+name, t.cfg.Prefix)
		}
	}
	return nil
}

// holds reports whether anything was ever written to topic.
func (t *Transport) holds(topic string, partitions int) (bool, error) {
	for p := range int32(partitions) {
		end, err := t.client.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return false, fmt.Errorf("kafka: where topic %s ends: %w", topic, err)
		}
		if end > 0 {
			return true, nil
		}
	}
	return false, nil
}
