package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// findings is what was found of topics.
type findings struct {
	lanes    int     // how many partitions they have, or are to get
	missing  []Spec  // not there, in the order of specs
	refusals []error // why we do not start
	warnings []string
}

// inspect compares specs with the topics that stand, by name.
func (c Config) inspect(specs []Spec, have map[string]Standing) findings {
	f := findings{lanes: c.lanes(specs, have)}
	for _, spec := range specs {
		s, ok := have[spec.Name]
		if !ok {
			f.missing = append(f.missing, spec)
			continue
		}
		if s.Partitions != f.lanes && s.Partitions != 0 { // 0: it was just made
			f.refusals = append(f.refusals, c.unequal(spec, s.Partitions, f.lanes))
		}
		c.settings(&f, spec, s)
	}
	if c.NoCreate && len(f.missing) > 0 {
		f.refusals = append(f.refusals, c.missing(f.missing, f.lanes))
	}
	return f
}

// lanes returns how many partitions the topics have: where they differ, those of the first
// of specs that stands.
func (c Config) lanes(specs []Spec, have map[string]Standing) int {
	for _, spec := range specs {
		if n := have[spec.Name].Partitions; n > 0 {
			return n
		}
	}
	return c.Lanes
}

// settings adds to f what is wrong with the settings of s.
func (c Config) settings(f *findings, spec Spec, s Standing) {
	refuse := func(setting, value, why string) {
		f.refusals = append(f.refusals, fmt.Errorf("kafka: topic %s has %s=%s: %s; mend it with: %s",
			spec.Name, setting, s.settings[setting], why, c.AlterCommand(spec.Name, setting, value)))
	}
	if spec.Empty {
		return
	}
	policy := s.settings[cleanupPolicy]
	compacts := slices.Contains(strings.Split(policy, ","), policyCompact)
	switch {
	case spec.Compacted && policy != policyCompact:
		refuse(cleanupPolicy, policyCompact, "it holds the state of all pages, which would be lost after the topic's retention")
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

// unequal refuses a topic with another number of partitions than the others.
func (c Config) unequal(spec Spec, partitions, lanes int) error {
	const why = "kafka: topic %s has %d partitions and the others have %d, but all need the same number"
	if partitions < lanes && !spec.Compacted {
		return fmt.Errorf(why+"; mend it with: %s", spec.Name, partitions, lanes, c.partitionsCommand(spec.Name, lanes))
	}
	return fmt.Errorf(why+"; partitions cannot be taken away: stop all processes, and if nothing in it is needed, delete it, so that it is made anew: %s",
		spec.Name, partitions, lanes, c.deleteCommand(spec.Name))
}

// missing refuses that topics are not there.
func (c Config) missing(topics []Spec, lanes int) error {
	replicas := c.Replication
	if replicas == 0 {
		replicas = DefaultReplication
	}
	var names, commands []string
	for _, spec := range topics {
		names = append(names, spec.Name)
		commands = append(commands, c.createCommand(spec, lanes, replicas))
	}
	return fmt.Errorf("kafka: topics are missing, and making them is switched off: %s; make them with:\n  %s",
		strings.Join(names, ", "), strings.Join(commands, "\n  "))
}
