package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	transport "github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/sinks/email"
	"github.com/vokter/vokter/sinks/exec"
	"github.com/vokter/vokter/sinks/gotify"
	"github.com/vokter/vokter/sinks/kafka"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/sinks/slack"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/sinks/telegram"
	"github.com/vokter/vokter/sinks/webhook"
	kafkasource "github.com/vokter/vokter/sources/kafka"
)

// runName is the verb that hangups do not end.
const runName = "run"

func (a *app) runVerb() *cobra.Command {
	var limits limitFlags
	cmd := a.flags.with(&cobra.Command{
		Use:   runName + " -c FILE",
		Short: "Runs the pipeline of a configuration until SIGTERM",
		Long: "Runs the pipeline of a configuration until SIGTERM. It reads the file again on SIGHUP, and when it changes.\n\n" +
			"With --transport kafka several processes with the same file share the pages. If one of them ends, the others take " +
			"over its pages. State is kept in Kafka; --data DIR caches it." + exitCodes,
		Example: `  vokter-stream run -c vokter.yaml
  vokter-stream run -c vokter.yaml --transport kafka --brokers kafka-1:9092`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runFile(cmd, &limits) },
	}, outputFlags|pipelineFlags|configFlags)
	limits.add(cmd.Flags())
	return cmd
}

func (a *app) runFile(cmd *cobra.Command, limits *limitFlags) error {
	files := new(fileSet)
	a.named = files.add
	load := func() (*config.Config, error) {
		files.reset()
		c, err := a.load(cmd)
		if err != nil {
			return nil, err
		}
		return c, limits.apply(cmd, &c.Router)
	}
	c, err := load()
	if err != nil {
		return err
	}
	used := contentOf(a.flags.config, files)
	if c.Transport != nil {
		if c.Router.Transport, err = c.Transport.Open(); err != nil {
			return err
		}
	}
	logWarnings(c.Router.Logger, c)
	again := &reloader{
		path: a.flags.config, files: files, load: load, options: c.Options, hangups: a.hangups, log: c.Router.Logger, listen: c.Listen, transport: c.Transport, used: used, seen: used,
	}
	sum, err := a.execute(cmd.Context(), c.Router, c.Listen, limits.summary, func(ctx context.Context, r *vokter.Router) {
		again.apply, again.look = r.Reload, a.look
		again.retry = func(ctx context.Context, sink string) error {
			_, err := r.Retry(ctx, vokter.RetryFilter{Sink: sink})
			return err
		}
		if a.look == nil {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			again.look = tick.C
		}
		again.run(ctx)
	})
	if err != nil || limits.checks == 0 {
		return err
	}
	return failures(sum)
}

// logWarnings logs what in c does not do what it seems to.
func logWarnings(log *slog.Logger, c *config.Config) {
	for _, w := range c.Warnings {
		log.Warn(w.Message, "file", w.File, "line", w.Line)
	}
}

// load reads the configuration that the flags name; --data overrides its directory, and those
// of the transport what it says of that.
func (a *app) load(cmd *cobra.Command) (*config.Config, error) {
	if a.flags.config == "" {
		return nil, usage(cmd, "no configuration is given; write %s -c FILE", cmd.CommandPath())
	}
	log := a.flags.logger(a.stderr, slog.LevelInfo)
	c, err := config.Load(a.flags.config, config.Options{
		Registry: a.plugins(), TryTemplate: a.tryTemplate, Named: a.named, Allow: a.flags.allow, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	k, err := a.flags.cluster(cmd, clusterOf(c.Transport))
	if err != nil {
		return nil, err
	}
	if c.Transport = nil; k != nil {
		c.Transport = k
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
	transport.Register(&r)
	stdout.Register(&r, stdout.Config{Writer: a.stdout, Format: a.flags.format})
	slack.Register(&r)
	webhook.Register(&r)
	discord.Register(&r)
	mattermost.Register(&r)
	teams.Register(&r)
	telegram.Register(&r)
	ntfy.Register(&r)
	gotify.Register(&r)
	matrix.Register(&r)
	email.Register(&r)
	kafka.Register(&r)
	exec.Register(&r)
	kafkasource.Register(&r)
	return &r
}
