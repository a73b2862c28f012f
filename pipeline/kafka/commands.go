package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The commands of Kafka that mend what we refuse.

func (c Config) alterCommand(topic, setting, value string) string {
	return fmt.Sprintf("kafka-configs %s --alter --entity-type topics --entity-name %s --add-config %s=%s", c.bootstrap(), topic, setting, value)
}

func (c Config) partitionsCommand(topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics %s --alter --topic %s --partitions %d", c.bootstrap(), topic, partitions)
}

func (c Config) deleteCommand(topic string) string {
	return fmt.Sprintf("kafka-topics %s --delete --topic %s", c.bootstrap(), topic)
}

func (c Config) createCommand(spec topicSpec, partitions, replicas int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics %s --create --topic %s --partitions %d --replication-factor %d", c.bootstrap(), spec.Name, partitions, replicas)
	settings := creationSettings(spec, replicas)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, " --config %s=%s", name, settings[name])
	}
	return b.String()
}

// bootstrap returns how the commands find the brokers; who logs in writes that into a file.
func (c Config) bootstrap() string {
	s := "--bootstrap-server " + strings.Join(c.Brokers, ",")
	if c.TLS.Enable || c.SASL.Mechanism != "" {
		s += " --command-config client.properties"
	}
	return s
}
