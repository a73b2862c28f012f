package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// findings is what was found of topics.
type findings struct {
	lanes    int         // how many partitions they have, or are to get
	missing  []topicSpec // not there, in the order of specs
	refusals []error     // why we do not start
	warnings []string
}

// inspect compares specs with the topics that stand, by name. c has its defaults.
func (c Config) inspect(specs []topicSpec, have map[string]standing) findings {
	f := findings{lanes: c.lanes(specs, have)}
	for _, spec := range specs {
		s, ok := have[spec.Name]
		if !ok {
			f.missing = append(f.missing, spec)
			continue
		}
		if s.partitions != f.lanes && s.partitions != 0 { // 0: it was just made
			f.refusals = append(f.refusals, c.unequal(spec, s.partitions, f.lanes))
		}
		c.settings(&f, spec, s)
	}
	if !c.creates() && len(f.missing) > 0 {
		f.refusals = append(f.refusals, c.missing(f.missing, f.lanes))
	}
	return f
}

// lanes returns how many partitions the topics have: where they differ, those of the first
// of specs that stands.
func (c Config) lanes(specs []topicSpec, have map[string]standing) int {
	for _, spec := range specs {
		if n := have[spec.Name].partitions; n > 0 {
			return n
		}
	}
	return c.Lanes
}

// settings adds to f what is wrong with the settings of s.
func (c Config) settings(f *findings, spec topicSpec, s standing) {
	refuse := func(setting, value, why string) {
		f.refusals = append(f.refusals, fmt.Errorf("kafka: topic %s has %s=%s: %s; mend it with: %s",
			spec.Name, setting, s.settings[setting], why, c.alterCommand(spec.Name, setting, value)))
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
	if n, err := strconv.Atoi(s.settings[maxMessageBytes]); err == nil && n < maxMessage {
		refuse(maxMessageBytes, strconv.Itoa(maxMessage), "larger documents would fail for ever")
	}
	n, err := strconv.Atoi(s.settings[minInsync])
	switch {
	case err != nil:
	case n > s.replicas:
		refuse(minInsync, strconv.Itoa(max(1, s.replicas-1)), fmt.Sprintf("it is kept in %d brokers, so that nothing could be written", s.replicas))
	case n < 2 && s.replicas >= 3:
		f.warnings = append(f.warnings, fmt.Sprintf("topic %s has %s=%d, so that what was acknowledged may be in one broker only; better: %s",
			spec.Name, minInsync, n, c.alterCommand(spec.Name, minInsync, "2")))
	}
	ms, err := strconv.ParseInt(s.settings[retentionMs], 10, 64)
	if err == nil && !spec.Compacted && !spec.Ephemeral && ms >= 0 && ms < day.Milliseconds() {
		f.warnings = append(f.warnings, fmt.Sprintf("topic %s has %s=%d, less than a day: a longer outage would lose messages; better: %s",
			spec.Name, retentionMs, ms, c.alterCommand(spec.Name, retentionMs, spec.Settings[retentionMs])))
	}
}

// unequal refuses a topic with another number of partitions than the others.
func (c Config) unequal(spec topicSpec, partitions, lanes int) error {
	const why = "kafka: topic %s has %d partitions and the others have %d, but all need the same number"
	if partitions < lanes && !spec.Compacted {
		return fmt.Errorf(why+"; mend it with: %s", spec.Name, partitions, lanes, c.partitionsCommand(spec.Name, lanes))
	}
	return fmt.Errorf(why+"; partitions cannot be taken away: stop all processes, and if nothing in it is needed, delete it, so that it is made anew: %s",
		spec.Name, partitions, lanes, c.deleteCommand(spec.Name))
}

// missing refuses that topics are not there.
func (c Config) missing(topics []topicSpec, lanes int) error {
	replicas := c.Replication
	if replicas == 0 {
		replicas = defaultReplication
	}
	var names, commands []string
	for _, spec := range topics {
		names = append(names, spec.Name)
		commands = append(commands, c.createCommand(spec, lanes, replicas))
	}
	return fmt.Errorf("kafka: topics are missing, and making them is switched off: %s; make them with:\n  %s",
		strings.Join(names, ", "), strings.Join(commands, "\n  "))
}

// checkKnown refuses topics that are not those of the last run: with another number of
// partitions, keys lie in other lanes than their state, and in a topic that was made again
// the positions mean nothing. The zero known is that of a first run.
func checkKnown(known, now topicInfo) error {
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
