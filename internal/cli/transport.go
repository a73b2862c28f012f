package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka"
)

// cluster returns the Kafka cluster that is to be the transport, or nil for the local one. The
// flags win over file, which is what a configuration says of it, or nil.
func (f *commonFlags) cluster(cmd *cobra.Command, file *config.Kafka) (*config.Kafka, error) {
	given := cmd.Flags().Changed
	k := file
	switch {
	case !given("transport"):
	case f.transport == config.TransportLocal:
		k = nil
	case k == nil:
		k = config.NewKafka()
	}
	if k == nil {
		for _, name := range []string{"brokers", "topic-prefix"} {
			if given(name) {
				return nil, usage(cmd, "--%s is an option of --transport kafka; add that", name)
			}
		}
		return nil, nil
	}
	c := *k
	if given("brokers") {
		c.Brokers = f.brokers
	}
	if given("topic-prefix") {
		c.TopicPrefix = f.topicPrefix
	}
	if !given("brokers") && len(c.Brokers) == 0 {
		return nil, usage(cmd, "--transport kafka needs brokers; add --brokers HOST:PORT")
	}
	return &c, asFlags(cmd, checkKafka(&c))
}

// asFlags says in terms of the flags what the joined errors about fields say.
func asFlags(cmd *cobra.Command, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var lines []string
	for _, e := range joined.Unwrap() {
		line := e.Error()
		if fe, ok := errors.AsType[*pipeline.FieldError](e); ok {
			line = asFlag(fe)
		}
		lines = append(lines, line)
	}
	return usage(cmd, "%s", strings.Join(lines, "\n"))
}

// checkKafka says what is wrong with k. It connects to nothing.
func checkKafka(k *config.Kafka) error { return kafkaConfig(k).Validate() }

// kafkaConfig is k as the transport takes it.
func kafkaConfig(k *config.Kafka) kafka.Config {
	return kafka.Config{
		Brokers: slices.Clone(k.Brokers), Prefix: k.TopicPrefix, Lanes: k.Partitions, Replication: k.Replication,
		NoCreate: !k.CreateTopics, Group: k.Group, InstanceID: k.InstanceID, SessionTimeout: k.SessionTimeout,
		TLS: kafka.TLS(k.TLS), SASL: kafka.SASL(k.SASL),
	}
}

// transportOf makes the transport for k: nil, the embedded one, where k is nil.
func transportOf(k *config.Kafka) (flow.Transport, error) {
	if k == nil {
		return nil, nil
	}
	return kafka.New(kafkaConfig(k))
}
