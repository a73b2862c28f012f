package admin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
)

// CheckKnown refuses topics that are not those of the last run: with another number of
// partitions, keys lie in other lanes than their state, and in a topic that was made again
// the positions mean nothing. The zero known is that of a first run.
func CheckKnown(known, now Info) error {
	var errs []error
	names := slices.Sorted(maps.Keys(known.IDs))
	if known.Lanes != 0 && known.Lanes != now.Lanes {
		errs = append(errs, fmt.Errorf("kafka: the topics %s had %d partitions at the last run and have %d now, so that pages lie in other partitions than their state; %s",
			strings.Join(names, ", "), known.Lanes, now.Lanes, anew))
	}
	for _, name := range names {
		if id, ok := now.IDs[name]; ok && id != known.IDs[name] {
			errs = append(errs, fmt.Errorf("kafka: topic %s was deleted and made again since the last run (its ID was %s and is %s): what was in it is lost, and positions in it mean nothing; %s",
				name, known.IDs[name], id, anew))
		}
	}
	return errors.Join(errs...)
}

// anew is what a user can do whose state and topics do not fit any more.
const anew = "stop all processes, save the state with vokter-stream state export DIR, and read it into topics of another topic_prefix with vokter-stream state import DIR"

// stateLost refuses topics of which only the state is missing: every page would be reported
// again, and the records in the other topics mean nothing without it. Only transactions that
// also write state write to these topics.
func (c Config) stateLost(client sarama.Client, admin sarama.ClusterAdmin) error {
	names := []string{TopicState, flow.TopicSubscriptions, flow.TopicChanges}
	var specs []Spec
	for _, name := range names {
		specs = append(specs, Spec{Name: c.Prefix + name})
	}
	have, err := Describe(admin, specs)
	if err != nil {
		return err
	}
	for i, name := range names {
		s, ok := have[c.Prefix+name]
		if !ok {
			continue
		}
		holds, err := holds(client, c.Prefix+name, s.Partitions)
		switch {
		case err != nil:
			return err
		case i == 0 && holds:
			return nil
		case holds:
			return fmt.Errorf("kafka: the topic %s is missing or empty, and %s is not: what was known of the pages is lost, and what stands in the other topics means nothing without it; "+
				"choose another topic_prefix, to begin anew or with a state import, or delete all topics that begin with %s",
				c.Prefix+TopicState, c.Prefix+name, c.Prefix)
		}
	}
	return nil
}

// holds reports whether anything was ever written to topic.
func holds(client sarama.Client, topic string, partitions int) (bool, error) {
	for p := range int32(partitions) {
		end, err := client.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return false, fmt.Errorf("kafka: where topic %s ends: %w", topic, err)
		}
		if end > 0 {
			return true, nil
		}
	}
	return false, nil
}
