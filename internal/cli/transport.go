package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/registry"
)

// transportKafka is the name of the transport over Kafka.
const transportKafka = "kafka"

// checkTransport refuses the name of a transport that there is none of.
func checkTransport(name string) error {
	if all := []string{config.TransportLocal, transportKafka}; !slices.Contains(all, name) {
		return fmt.Errorf("unknown transport %q; %s", name, nearest.Hint(name, all))
	}
	return nil
}

// cluster returns the Kafka cluster that is to be the transport, or nil for the local one. The
// flags win over file, which is what a configuration says of it, or nil.
func (f *commonFlags) cluster(cmd *cobra.Command, file *kafka.Config) (*kafka.Config, error) {
	given := cmd.Flags().Changed
	k := file
	switch {
	case !given("transport"):
	case f.transport == config.TransportLocal:
		k = nil
	case k == nil:
		k = new(kafka.Config)
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
		c.Prefix = f.topicPrefix
	}
	if !given("brokers") && len(c.Brokers) == 0 {
		return nil, usage(cmd, "--transport kafka needs brokers; add --brokers HOST:PORT")
	}
	return &c, asFlags(cmd, c.Validate())
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

// clusterOf is what a configuration says of a Kafka cluster; nil: nothing.
func clusterOf(t registry.Transport) *kafka.Config {
	k, _ := t.(*kafka.Config)
	return k
}
