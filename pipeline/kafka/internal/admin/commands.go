package admin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The commands of Kafka that mend what a start refuses.

func (c Config) partitionsCommand(topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics %s --alter --topic %s --partitions %d", c.Bootstrap(), topic, partitions)
}

func (c Config) deleteCommand(topic string) string {
	return fmt.Sprintf("kafka-topics %s --delete --topic %s", c.Bootstrap(), topic)
}

func (c Config) createCommand(spec Spec, partitions, replicas int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics %s --create --topic %s --partitions %d --replication-factor %d", c.Bootstrap(), spec.Name, partitions, replicas)
	settings := creationSettings(spec, replicas)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, " --config %s=%s", name, settings[name])
	}
	return b.String()
}
