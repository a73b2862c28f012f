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
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/plugins"
	"github.com/vokter/vokter/internal/rest"
	"github.com/vokter/vokter/internal/slackapp"
	"github.com/vokter/vokter/internal/web"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sinks/webhook"
)

// The verbs that hangups do not end.
const (
	runName   = "run"
	serveName = "serve"
)

func (a *app) runVerb() *cobra.Command {
	var limits limitFlags
	cmd := a.flags.addTo(&cobra.Command{
		Use:   runName + " -c FILE",
		Short: "Runs the pipeline of a configuration until SIGTERM",
		Long: "Runs the pipeline of a configuration until SIGTERM. It reads the file again on SIGHUP, and when it changes.\n\n" +
			"With --transport kafka several processes with the same file share the pages. If one of them ends, the others take " +
			"over its pages. State is kept in Kafka; --data DIR caches it." + exitCodes,
		Example: `  vokter-stream run -c vokter.yaml
  vokter-stream run -c vokter.yaml --transport kafka --brokers kafka-1:9092`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runFile(cmd, &limits, nil) },
	}, outputFlags|pipelineFlags|configFlags)
	limits.add(cmd.Flags())
	return cmd
}

// runFile runs the pipeline of the configuration file or, with serve, the one that needs none.
func (a *app) runFile(cmd *cobra.Command, limits *limitFlags, serve *serveFlags) error {
	files := new(fileSet)
	a.onFile = files.add
	load := func() (*config.Config, error) {
		files.reset()
		if serve != nil {
			return a.loadServe(serve)
		}
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
	used := digestContent(a.flags.config, files)
	if c.Transport != nil {
		if c.Router.Transport, err = c.Transport.Open(); err != nil {
			return err
		}
	}
	logWarnings(c.Router.Logger, c)
	old, err := openRest(cmd.Context(), c)
	if err != nil {
		return err
	}
	defer old.close()
	logins, err := manage.OpenLogins(c.Router.Dir, c.Router.Logger)
	if err != nil {
		return err
	}
	at := listenSettings{addr: c.Listen, access: new(manage.Access), web: new(web.Settings), slack: new(slackapp.Settings), logins: logins}
	if serve != nil {
		at.announced = func(addr string) { a.printLink(addr, logins.NewLink()) }
	}
	var made *receivers
	if c.Router.Dir != "" && c.Listen != "" {
		if made, err = a.newReceivers(c.Router.Dir); err != nil {
			return err
		}
		at.sinks = made
	}
	if err := at.access.Configure(c.API); err != nil {
		return err
	}
	at.web.Configure(c.Web)
	at.slack.Configure(c.Router.Sinks)
	started := *c
	started.Router = vokter.Config{} // it may be large
	again := &reloader{
		path: a.flags.config, files: files, load: load, hangups: a.hangups, ticks: a.configTicks, log: c.Router.Logger,
		started: &started, now: &started, at: at, applied: used, seen: used,
	}
	if made != nil {
		made.again, again.requests = again, made.requests
	}
	sum, err := a.runPipeline(cmd.Context(), c.Router, at, limits.summary, func(ctx context.Context, r *vokter.Router) {
		again.apply = r.Reload
		again.retry = func(ctx context.Context, sink string) error {
			_, err := r.Retry(ctx, flow.RetryFilter{Sink: sink})
			return err
		}
		if again.ticks == nil {
			tick := time.NewTicker(configCheckInterval)
			defer tick.Stop()
			again.ticks = tick.C
		}
		var g sync.WaitGroup
		defer g.Wait()
		g.Go(func() { old.serve(ctx, r) })
		again.run(ctx)
	})
	if err != nil || limits.checks == 0 {
		return err
	}
	return a.reportChecks(sum)
}

// logWarnings logs the warnings about c.
func logWarnings(log *slog.Logger, c *config.Config) {
	for _, w := range c.Warnings {
		log.Warn(w.Message, "file", w.File, "line", w.Line)
	}
}

// load reads the configuration that the flags name. The flag --data overrides its directory,
// the flags of the transport its transport.
func (a *app) load(cmd *cobra.Command) (*config.Config, error) {
	if a.flags.config == "" {
		hint := ""
		if cmd.Name() == runName {
			hint = ", or vokter-stream serve, which needs none"
		}
		return nil, newUsageError(cmd, "no configuration is given; write %s -c FILE%s", cmd.CommandPath(), hint)
	}
	log := a.flags.logger(a.stderr, slog.LevelInfo)
	c, err := config.Load(a.flags.config, config.Options{
		Registry: a.plugins(), Named: a.onFile, Allow: a.flags.allow, Files: a.flags.allowFiles, Data: a.flags.data, Receivers: a.receivers, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	k, err := a.flags.kafkaConfig(cmd, kafkaConfigOf(c.Transport))
	if err != nil {
		return nil, err
	}
	if c.Transport = nil; k != nil {
		c.Transport = k
	}
	c.Router.Logger = log
	if c.Rest != nil {
		receivers, err := rest.NewReceivers(webhook.Config{
			Format: c.Rest.Format, Secret: c.Rest.Secret, Verify: c.Rest.Verify, Connection: registry.Connection{Allow: c.Rest.Allow},
		})
		if err != nil {
			return nil, fmt.Errorf("%s: rest: %w", a.flags.config, err)
		}
		c.Router.SinkOf = receivers.SinkOf
	}
	return c, nil
}

// plugins returns the plugins that a configuration may name.
func (a *app) plugins() *registry.Registry {
	return plugins.Registry(stdout.Config{Writer: a.stdout, Format: a.flags.format})
}

// runPipeline runs the pipeline of cfg and writes the summary at its end. It starts an HTTP
// listener at an address unless that is empty. It calls beside, unless that is nil, once the
// pipeline works.
func (a *app) runPipeline(ctx context.Context, cfg vokter.Config, at listenSettings, summaryFile string, beside func(context.Context, *vokter.Router)) (inspect.Summary, error) {
	stopTraces, err := startTracing(ctx, &cfg)
	if err != nil {
		return inspect.Summary{}, &usageError{err: err}
	}
	defer stopTraces()
	r, err := a.newRouter(cfg)
	if err != nil {
		return inspect.Summary{}, err
	}
	err = runWithListener(ctx, r, cfg, at, beside)
	if errors.Is(err, vokter.ErrNothingRead) {
		err = nil // reportChecks says which pages failed, and which of them failed before
	}
	sum := r.Summary()
	select {
	case <-r.Running(): // if it did not start, the file keeps the earlier summary
		if summaryFile != "" {
			err = errors.Join(err, writeSummary(summaryFile, sum))
		}
	default:
	}
	return sum, err
}

// runWithListener runs r with a listener, which starts first, and calls beside once r works.
func runWithListener(ctx context.Context, r *vokter.Router, cfg vokter.Config, at listenSettings, beside func(context.Context, *vokter.Router)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	l, err := at.start(ctx, r, cfg)
	if err != nil {
		cancel()
		if first := <-ended; first != nil { // for example a data directory that is in use
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
	// Before r works another process may own the data directory.
	if err := errors.Join(writeOrigin(cfg), l.announce()); err != nil {
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

// checkSummary returns an error before the run if the summary could not be written to path.
func checkSummary(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // opening a pipe would wait for its reader
	case err == nil && !isReplaceable(path):
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return notWritable(path, err)
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPattern(path))
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

// notWritable returns err about path, the name that the user gave, instead of the temporary
// file.
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

// writeFile replaces the file at path atomically. If it is not a regular file (/dev/stdout), it
// writes into it.
func writeFile(path string, b []byte) error {
	if !isReplaceable(path) {
		return writeInto(path, b)
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporaryPattern(path))
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

// isReplaceable reports whether path is a regular file or does not exist. A symbolic link, such
// as /dev/stdout, is not replaceable.
func isReplaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// writeInto writes b into the existing file at path. It does not truncate files such as
// /dev/stdout, which may hold earlier output.
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

// temporaryPattern returns the pattern for os.CreateTemp of a file that replaces path.
func temporaryPattern(path string) string { return "." + filepath.Base(path) + "-*" }

// maxNamedFailures is how many failed pages an error names.
const maxNamedFailures = 10

// errStillFailing is the error of a run with --checks in which nothing is new: checks failed as they did in the run
// before, which said so. A line in a crontab then sends no mail.
var errStillFailing = errors.New("")

// reportChecks prints which pages answer again after a run with --checks, and returns summaryError.
func (a *app) reportChecks(sum inspect.Summary) error {
	said := make(map[string]bool)
	for _, d := range sum.Documents {
		if d.Recovered && d.LastError == "" && !said[d.URL] {
			said[d.URL] = true
			fmt.Fprintf(a.stderr, "vokter-stream: %s answers again\n", d.URL)
		}
	}
	return summaryError(sum)
}

// summaryError returns an error with one line for each page that failed in a run with --checks, or
// nil.
func summaryError(sum inspect.Summary) error {
	var lines []string
	failed := 0
	seen := make(map[string]bool) // the summary lists a page once for each of its documents
	for _, d := range sum.Documents {
		if d.LastError == "" || seen[d.URL] {
			continue
		}
		seen[d.URL] = true
		if d.StillFailing {
			continue
		}
		if failed++; failed <= maxNamedFailures {
			lines = append(lines, fmt.Sprintf("the last check of %s failed: %s", d.URL, d.LastError))
		}
	}
	if failed > maxNamedFailures {
		lines = append(lines, fmt.Sprintf("the last checks of %d more pages failed; list says why", failed-maxNamedFailures))
	}
	if sum.Pending > 0 {
		lines = append(lines, fmt.Sprintf("%s not delivered yet; they are kept, and sent when the data directory is used again; list --sinks says why", countNoun(sum.Pending, "notification")))
	}
	if sum.Dead > 0 {
		lines = append(lines, fmt.Sprintf("%s given up: list --sinks says why, replay sends them again", countNoun(sum.Dead, "notification")))
	}
	if sum.Unhandled > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be handled: replay --dry-run says why", countNoun(sum.Unhandled, "message")))
	}
	switch {
	case len(lines) == 0 && len(seen) == 0:
		return nil
	case len(lines) == 0:
		return errStillFailing
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
