package admin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// findings is the result of comparing topics with their specs.
type findings struct {
	lanes    int     // partitions that the topics have, or will get
	missing  []Spec  // topics that do not exist, in the order of specs
	problems []error // why Start fails
	warnings []string
}

// inspect compares specs with the existing topics, by name.
func (c Config) inspect(specs []Spec, have map[string]Standing) findings {
	f := findings{lanes: c.laneCount(specs, have)}
	f.problems = c.partitionProblems(specs, have, f.lanes)
	for _, spec := range specs {
		s, ok := have[spec.Name]
		if !ok {
			f.missing = append(f.missing, spec)
			continue
		}
		c.checkSettings(&f, spec, s)
	}
	if c.NoCreate && len(f.missing) > 0 {
		f.problems = append(f.problems, c.missingTopicsError(f.missing, f.lanes))
	}
	return f
}

// laneCount returns the number of partitions of the topics that are divided into lanes; if they differ, that of most of
// them.
func (c Config) laneCount(specs []Spec, have map[string]Standing) int {
	counts, most := make(map[int]int), 0
	for _, spec := range specs {
		if n := have[spec.Name].Partitions; n > 0 && !spec.Outlet { // 0: it is missing, or was just made
			if counts[n]++; counts[n] > counts[most] {
				most = n
			}
		}
	}
	return cmp.Or(most, c.Lanes)
}

// partitionProblems returns an error for each topic that has not as many partitions as it needs.
func (c Config) partitionProblems(specs []Spec, have map[string]Standing, lanes int) (problems []error) {
	for _, spec := range specs {
		if n := have[spec.Name].Partitions; n > 0 && n != lanes && !spec.mayHave(n, lanes) {
			problems = append(problems, c.partitionCountError(spec, n, lanes))
		}
	}
	return problems
}

// mayHave reports whether a topic with another number of partitions than there are lanes serves.
func (s Spec) mayHave(partitions, lanes int) bool {
	return s.Outlet && (!s.Compacted || partitions > lanes)
}

// Compare returns what is wrong with the topics of specs as they are now, for a process that knows them from before:
// which got other partitions than the others, or were made again.
func (c Config) Compare(known Info, specs []Spec, have map[string]Standing) error {
	lanes := c.laneCount(specs, have)
	return errors.Join(append(c.partitionProblems(specs, have, lanes), CheckKnown(known, InfoOf(have, lanes)))...)
}

// checkSettings adds the unsuitable settings of s to f.
func (c Config) checkSettings(f *findings, spec Spec, s Standing) {
	refuse := func(setting, value, why string) {
		f.problems = append(f.problems, fmt.Errorf("kafka: topic %s has %s=%s: %s; mend it with: %s",
			spec.Name, setting, s.settings[setting], why, c.AlterCommand(spec.Name, setting, value)))
	}
	if spec.Empty {
		return
	}
	policy := s.settings[cleanupPolicy]
	compacts := slices.Contains(strings.Split(policy, ","), policyCompact)
	switch {
	case spec.Compacted && policy != policyCompact:
		refuse(cleanupPolicy, policyCompact, "the last record of each key has to stay, and would be lost after the topic's retention")
	case !spec.Compacted && compacts:
		refuse(cleanupPolicy, policyDelete, "all messages of a key but the last would be lost")
	}
	if n, err := strconv.Atoi(s.settings[maxMessageBytes]); err == nil && n < client.MaxMessage {
		refuse(maxMessageBytes, strconv.Itoa(client.MaxMessage), "larger documents would fail for ever")
	}
	n, err := strconv.Atoi(s.settings[minInsync])
	switch {
	case err != nil:
	case n > s.replicas:
		refuse(minInsync, strconv.Itoa(max(1, s.replicas-1)), fmt.Sprintf("it is kept in %d brokers, so that nothing could be written", s.replicas))
	case n < 2 && s.replicas >= 3:
		f.warnings = append(f.warnings, fmt.Sprintf("topic %s has %s=%d, so that what was acknowledged may be in one broker only; better: %s",
			spec.Name, minInsync, n, c.AlterCommand(spec.Name, minInsync, "2")))
	}
	ms, err := strconv.ParseInt(s.settings[retentionMs], 10, 64)
	if err == nil && !spec.Compacted && !spec.Ephemeral && ms >= 0 && ms < day.Milliseconds() {
		f.warnings = append(f.warnings, fmt.Sprintf("topic %s has %s=%d, less than a day: a longer outage would lose messages; better: %s",
			spec.Name, retentionMs, ms, c.AlterCommand(spec.Name, retentionMs, spec.Settings[retentionMs])))
	}
}

// partitionCountError returns the error for a topic with another number of partitions than the others.
func (c Config) partitionCountError(spec Spec, partitions, lanes int) error {
	const why = "kafka: topic %s has %d partitions and the others have %d, but all need the same number"
	if partitions < lanes && (!spec.Compacted || spec.Outlet) {
		return fmt.Errorf(why+"; mend it with: kafka-topics %s --alter --topic %s --partitions %d", spec.Name, partitions, lanes, c.Bootstrap(), spec.Name, lanes)
	}
	return fmt.Errorf(why+", and partitions cannot be removed; %s. If no process has ever run with these topics, delete this one instead: kafka-topics %s --delete --topic %s",
		spec.Name, partitions, lanes, remedy, c.Bootstrap(), spec.Name)
}

// missingTopicsError returns the error for topics that do not exist while c.NoCreate is set.
func (c Config) missingTopicsError(topics []Spec, lanes int) error {
	replicas := cmp.Or(c.Replication, defaultReplication)
	var names, commands []string
	for _, spec := range topics {
		names = append(names, spec.Name)
		commands = append(commands, c.createCommand(spec, lanes, replicas))
	}
	return fmt.Errorf("kafka: topics are missing, and making them is switched off: %s; make them with:\n  %s",
		strings.Join(names, ", "), strings.Join(commands, "\n  "))
}

// The levels of the feature metadata.version that brokers of 4.2 and 4.3 support at most.
const (
	metadataFeature  = "metadata.version"
	metadataLevel4_2 = 28
	metadataLevel4_3 = 30
)

// brokerWarning warns of a broker that can lose parts of transactions when it is killed
// (KAFKA-20734). That matters only if alone is set: a topic has one replica. A broker that does
// not report its version gets no warning.
func brokerWarning(admin sarama.ClusterAdmin, alone bool) []string {
	if !alone {
		return nil
	}
	b, err := admin.Controller()
	if err != nil {
		return nil
	}
	versions, err := b.ApiVersions(&sarama.ApiVersionsRequest{Version: 3, ClientSoftwareName: cluster.ClientID, ClientSoftwareVersion: "1"})
	if err != nil {
		return nil
	}
	for _, f := range versions.SupportedFeatures {
		if f.Name == metadataFeature && isAffected(f.MaxVersion) {
			return []string{"topics are kept in one broker only, and the broker is a Kafka of 4.2 or 4.3, which can lose half of a transaction when it is killed (KAFKA-20734); use replication 3, or 4.1"}
		}
	}
	return nil
}

// isAffected reports whether a broker that supports level at most has the bug.
func isAffected(level int16) bool { return level >= metadataLevel4_2 && level <= metadataLevel4_3 }

// hasSingleReplica reports whether one of the topics has only one replica.
func hasSingleReplica(have map[string]Standing) bool {
	for _, s := range have {
		if s.replicas == 1 {
			return true
		}
	}
	return false
}

// CheckKnown returns an error if the topics are not those of the last run. With another number of
// partitions, keys are in other lanes than their state; in a topic that was created again the
// positions are invalid. At the first run known is zero.
func CheckKnown(known, now Info) error {
	var errs []error
	names := slices.Sorted(maps.Keys(known.IDs))
	if known.Lanes != 0 && known.Lanes != now.Lanes {
		errs = append(errs, fmt.Errorf("kafka: the topics %s had %d partitions at the last run and have %d now, so that pages are in other partitions than their state; %s",
			strings.Join(names, ", "), known.Lanes, now.Lanes, remedy))
	}
	for _, name := range names {
		if id, ok := now.IDs[name]; ok && id != known.IDs[name] {
			errs = append(errs, fmt.Errorf("kafka: topic %s was deleted and made again since the last run (its ID was %s and is %s): its messages are lost, and positions in it are invalid; %s",
				name, known.IDs[name], id, remedy))
		}
	}
	return errors.Join(errs...)
}

// remedy says what to do if state and topics do not match any more.
const remedy = "stop all processes, and start them with another topic_prefix: there each page begins with a new baseline, " +
	"and subscriptions that are not in the configuration must be made again"

// checkStateLost returns an error if only the state topic is missing or empty: every page would be
// reported again, and the records in the other topics are useless without the state. The topics
// that it looks at are written only by transactions that also write state.
func (c Config) checkStateLost(client sarama.Client, admin sarama.ClusterAdmin) error {
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
		holds, err := hasRecords(client, c.Prefix+name, s.Partitions)
		switch {
		case err != nil:
			return err
		case i == 0 && holds:
			return nil
		case holds:
			return fmt.Errorf("kafka: the topic %s is missing or empty, and %s is not: the state of the pages is lost, and the records in the other topics are useless without it; "+
				"choose another topic_prefix, or delete all topics that begin with %s",
				c.Prefix+TopicState, c.Prefix+name, c.Prefix)
		}
	}
	return nil
}

// hasRecords reports whether anything was ever written to topic.
func hasRecords(client sarama.Client, topic string, partitions int) (bool, error) {
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

// createCommand returns the command of Kafka that creates the topic of spec.
func (c Config) createCommand(spec Spec, partitions, replicas int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics %s --create --topic %s --partitions %d --replication-factor %d", c.Bootstrap(), spec.Name, partitions, replicas)
	for _, setting := range settingLines(spec, replicas) {
		b.WriteString(" --config " + setting)
	}
	return b.String()
}
