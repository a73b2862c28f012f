package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"

	"github.com/vokter/vokter/pipeline/flow"
)

// checkLimit is how long Check takes at most.
const checkLimit = 5 * time.Second

var errSlow = fmt.Errorf("kafka: the brokers did not answer within %v", checkLimit)

// Check compares the cluster with what a Transport with topics (names without the prefix) needs,
// and changes nothing. See kafka.Check.
func Check(ctx context.Context, c Config, topics map[string]flow.Topic) ([]string, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Metadata.Retry.Max, conf.Admin.Retry.Max = 0, 1
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errSlow)
	defer cancel()
	connected, err := c.Config.Connect(ctx, conf)
	if err != nil {
		return nil, err
	}
	defer connected.Close()
	type report struct {
		lines []string
		err   error
	}
	r, err := client.Do(ctx, func() (report, error) {
		lines, err := c.check(connected, topics)
		return report{lines, err}, nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return r.lines, r.err
}

func (c Config) check(client sarama.Client, topics map[string]flow.Topic) ([]string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	brokers, _, err := admin.DescribeCluster()
	if err != nil {
		return nil, fmt.Errorf("kafka: how many brokers there are: %w", err)
	}
	specs := c.Specs(topics)
	have, err := Describe(admin, specs)
	if err != nil {
		return nil, err
	}
	found := c.inspect(specs, have)
	lines := []string{fmt.Sprintf("brokers: %d, at %s", len(brokers), addresses(brokers))}
	for _, spec := range specs {
		if s, ok := have[spec.Name]; ok {
			lines = append(lines, fmt.Sprintf("topic %s: %d partitions, replication %d", spec.Name, s.Partitions, s.replicas))
		}
	}
	alone := single(have)
	if !c.NoCreate && len(found.missing) > 0 {
		replicas, err := c.replicas(admin)
		if err != nil {
			return nil, err
		}
		for _, spec := range found.missing {
			lines = append(lines, fmt.Sprintf("topic %s: missing; a start makes it with %d partitions, replication %d, %s",
				spec.Name, found.lanes, replicas, settingsText(spec, replicas)))
		}
		alone = alone || replicas == 1
		if replicas > len(brokers) {
			found.refusals = append(found.refusals, fmt.Errorf("kafka: topics cannot be kept in %d brokers, as there are %d: lower replication", replicas, len(brokers)))
		}
	}
	if len(have) > 0 && found.lanes != c.Lanes {
		lines = append(lines, fmt.Sprintf("the topics keep their %d partitions; Partitions: %d counts where none of them stands", found.lanes, c.Lanes))
	}
	warnings := append(found.warnings, brokerWarning(admin, alone)...)
	// Asking for the group would make the brokers' own topics where they are new.
	if missing, err := c.missingOnTopics(client, topics); err == nil && len(missing) > 0 {
		warnings = append(warnings, "rights are missing: allow "+strings.Join(missing, "; "))
	}
	if w := c.OpenPassword(); w != "" {
		warnings = append(warnings, w)
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w)
	}
	return lines, errors.Join(found.refusals...)
}

func addresses(brokers []*sarama.Broker) string {
	var all []string
	for _, b := range brokers {
		all = append(all, b.Addr())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func settingsText(spec Spec, replicas int) string {
	settings := creationSettings(spec, replicas)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, name+"="+settings[name])
	}
	return strings.Join(all, ", ")
}
