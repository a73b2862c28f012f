package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
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

// execute runs the pipeline of cfg with an HTTP listener at listen, if that is not
// empty, and writes the summary at its end. Unless it is nil, beside runs once the pipeline
// is at work, until its context is done.
func (a *app) execute(ctx context.Context, cfg vokter.Config, listen, summaryFile string, beside func(context.Context, *vokter.Router)) (inspect.Summary, error) {
	r, err := a.router(cfg)
	if err != nil {
		return inspect.Summary{}, err
	}
	err = runBeside(ctx, r, cfg, listen, beside)
	sum := r.Summary()
	select {
	case <-r.Running(): // one that did not start leaves an earlier summary alone
		if summaryFile != "" {
			err = errors.Join(err, writeSummary(summaryFile, sum))
		}
	default:
	}
	return sum, err
}

// runBeside runs r with a listener, which answers from the beginning, and with beside once r
// is at work.
func runBeside(ctx context.Context, r *vokter.Router, cfg vokter.Config, listen string, beside func(context.Context, *vokter.Router)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	l, err := listenAt(ctx, r, cfg, listen)
	if err != nil {
		cancel()
		if first := <-ended; first != nil { // a data directory that is in use says more
			return first
		}
		return err
	}
	defer l.stop()
	select {
	case err := <-ended:
		return err
	case <-r.Running():
	}
	// Before that another process may own the data directory.
	if err := l.announce(); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	var g sync.WaitGroup
	if beside != nil {
		g.Go(func() { beside(ctx, r) })
	}
	err = <-ended
	cancel()
	g.Wait()
	return err
}

// checkSummary says, before anything is done, why the summary could not be written to path.
func checkSummary(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // opening a pipe would wait for its reader
	case err == nil && !replaceable(path):
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return notWritable(path, err)
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return notWritable(path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func writeSummary(path string, s inspect.Summary) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("--summary: %w", notWritable(path, err))
	}
	return nil
}

// notWritable names the file as the user did, not the temporary one beside it.
func notWritable(path string, err error) error {
	why := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		why = pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		why = le.Err
	}
	return fmt.Errorf("%s cannot be written to: %w", path, why)
}

// writeFile replaces the file at path at once, so that nobody reads half of it. What is
// no plain file (/dev/stdout) is written to as it is.
func writeFile(path string, b []byte) error {
	if !replaceable(path) {
		return writeInto(path, b)
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// replaceable reports whether path is a plain file or nothing yet. A symbolic link is
// neither: /dev/stdout is one.
func replaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// writeInto writes to what is there. What the system's names such as /dev/stdout stand for
// may have been written to before, and keeps that.
func writeInto(path string, b []byte) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if strings.HasPrefix(path, "/dev/") {
		flags = os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func temporary(path string) string { return "." + filepath.Base(path) + "-*" }

// maxFailures is how many pages that failed are named.
const maxFailures = 10

// failures says what went wrong in a run of some checks, one line each; nil: nothing did.
func failures(sum inspect.Summary) error {
	var lines []string
	failed := 0
	seen := make(map[string]bool) // a page has a line for each of its documents
	for _, d := range sum.Documents {
		if d.LastError == "" || seen[d.URL] {
			continue
		}
		seen[d.URL] = true
		if failed++; failed <= maxFailures {
			lines = append(lines, fmt.Sprintf("the last check of %s failed: %s", d.URL, d.LastError))
		}
	}
	if failed > maxFailures {
		lines = append(lines, fmt.Sprintf("the last checks of %d more pages failed; list says why", failed-maxFailures))
	}
	if sum.Pending > 0 {
		lines = append(lines, fmt.Sprintf("%s not delivered yet; they are kept, and sent when the data directory is used again; list --sinks says why", count(sum.Pending, "notification")))
	}
	if sum.Dead > 0 {
		lines = append(lines, fmt.Sprintf("%s given up: list --sinks says why, replay sends them again", count(sum.Dead, "notification")))
	}
	if sum.Unhandled > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be handled: replay --dry-run says why", count(sum.Unhandled, "message")))
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
