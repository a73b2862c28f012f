package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/sinks/stdout"
)

// mistake is one result of lint in JSON.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Warning says that it is no mistake: it does not change the exit code.
	Warning bool `json:"warning,omitempty"`
}

func (a *app) lint() *cobra.Command {
	var connect bool
	cmd := a.flags.with(&cobra.Command{
		Use:   "lint -c FILE",
		Short: "Checks a configuration and reports all problems at once",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.lintFile(cmd)
			if err != nil || !connect {
				return err
			}
			return a.lintCluster(cmd, clusterOf(c.Transport))
		},
	}, outputFlags|pipelineFlags|configFlags)
	cmd.Flags().BoolVar(&connect, "connect", false, "also ask the Kafka cluster whether it and its topics can be used; nothing is changed")
	return cmd
}

// lintFile prints what is wrong: for this verb that is the result. It returns what the file
// says, if nothing is.
func (a *app) lintFile(cmd *cobra.Command) (*config.Config, error) {
	c, err := a.load(cmd)
	mistakes, ok := errors.AsType[config.Errors](err)
	if err != nil && !ok {
		return nil, err
	}
	var warnings config.Errors
	if c != nil {
		warnings = c.Warnings
	}
	if err := a.printFindings(mistakes, warnings); err != nil {
		return nil, err
	}
	switch {
	case len(mistakes) == 1 && mistakes[0].Line == 0:
		return nil, &usageError{err: fmt.Errorf("%s cannot be read", a.flags.config)}
	case len(mistakes) > 0:
		return nil, &usageError{err: fmt.Errorf("%s has %s", a.flags.config, count(len(mistakes), "mistake"))}
	case a.flags.format == stdout.FormatJSON:
		return c, nil
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok (%s, %s, %s)\n", a.flags.config, count(len(c.Router.Subscriptions), "subscription"),
		count(len(c.Router.Documents), "document"), count(len(c.Router.Sinks), "sink"))
	return c, err
}

// clusterLine is what lint says of a cluster, in JSON.
type clusterLine struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// lintCluster prints how the cluster stands, and fails with what a start would refuse.
func (a *app) lintCluster(cmd *cobra.Command, k *kafka.Config) error {
	if k == nil {
		return usage(cmd, "--connect asks a Kafka cluster, but the transport of %s is local", a.flags.config)
	}
	lines, refused := kafka.Check(cmd.Context(), *k, vokter.Topology())
	out := a.results()
	for _, l := range lines {
		out.object(clusterLine{"cluster", l})
		out.text("%s", l)
	}
	return errors.Join(out.end(), refused)
}

// printFindings prints one line for each of them.
func (a *app) printFindings(mistakes, warnings config.Errors) error {
	out := json.NewEncoder(a.stdout)
	for i, m := range slices.Concat(mistakes, warnings) {
		f := mistake{m.File, m.Line, m.Column, m.Message, i >= len(mistakes)}
		var err error
		switch {
		case a.flags.format == stdout.FormatJSON:
			err = out.Encode(f)
		case f.Warning:
			_, err = fmt.Fprintf(a.stdout, "%s:%d:%d: warning: %s\n", f.File, f.Line, f.Column, f.Message)
		default:
			_, err = fmt.Fprintln(a.stdout, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
