package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/sinks/stdout"
)

// mistake is one result of lint in JSON.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func (a *app) lint() *cobra.Command {
	return a.flags.with(&cobra.Command{
		Use:   "lint -c FILE",
		Short: "Checks a configuration and reports all problems at once",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.lintFile(cmd) },
	}, outputFlags|pipelineFlags|configFlags)
}

// lintFile prints what is wrong: for this verb that is the result.
func (a *app) lintFile(cmd *cobra.Command) error {
	c, err := a.load(cmd)
	mistakes, ok := errors.AsType[config.Errors](err)
	switch {
	case err != nil && !ok:
		return err
	case ok && a.flags.format == stdout.FormatJSON:
		out := json.NewEncoder(a.stdout)
		for _, m := range mistakes {
			if err := out.Encode(mistake{m.File, m.Line, m.Column, m.Message}); err != nil {
				return err
			}
		}
	case ok:
		fmt.Fprintln(a.stdout, mistakes)
	case a.flags.format != stdout.FormatJSON:
		_, err := fmt.Fprintf(a.stdout, "%s: ok (%s, %s, %s)\n", a.flags.config, count(len(c.Router.Subscriptions), "subscription"),
			count(len(c.Router.Documents), "document"), count(len(c.Router.Sinks), "sink"))
		return err
	}
	if ok {
		return &usageError{err: fmt.Errorf("%s has %s", a.flags.config, count(len(mistakes), "mistake"))}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
