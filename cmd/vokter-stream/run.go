package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sinks/webhook"
)

func (a *app) runVerb() *cobra.Command {
	var limits limitFlags
	cmd := a.flags.with(&cobra.Command{
		Use:   "run -c FILE",
		Short: "Runs the pipeline of a configuration until SIGTERM",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runFile(cmd, &limits) },
	}, outputFlags|pipelineFlags|configFlags)
	limits.add(cmd.Flags())
	return cmd
}

func (a *app) runFile(cmd *cobra.Command, limits *limitFlags) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	if err := limits.apply(cmd, &c.Router); err != nil {
		return err
	}
	for _, w := range c.Warnings {
		c.Router.Logger.Warn(w.Message, "file", w.File, "line", w.Line)
	}
	if len(c.Router.Subscriptions) == 0 && len(c.Router.Documents) == 0 {
		c.Router.Logger.Warn("the configuration has neither subscriptions nor documents: nothing is watched")
	}
	_, err = a.execute(cmd.Context(), c.Router, c.Listen, limits.summary)
	return err
}

// load reads the configuration that the flags name; --data overrides its directory.
func (a *app) load(cmd *cobra.Command) (*config.Config, error) {
	if a.flags.config == "" {
		return nil, usage(cmd, "no configuration is given; write %s -c FILE", cmd.CommandPath())
	}
	log := a.flags.logger(a.stderr, slog.LevelInfo)
	c, err := config.Load(a.flags.config, config.Options{Registry: a.plugins(), Allow: a.flags.allow, Logger: log})
	if err != nil {
		return nil, err
	}
	c.Router.Logger = log
	if a.flags.data != "" {
		c.Router.Dir = a.flags.data
	}
	return c, nil
}

// plugins are those that a configuration may name.
func (a *app) plugins() *registry.Registry {
	var r registry.Registry
	stdout.Register(&r, a.stdout, stdout.Options{Format: a.flags.format})
	webhook.Register(&r)
	return &r
}
