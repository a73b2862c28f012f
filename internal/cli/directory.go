package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
)

// dataDirectory returns the data directory that the flags name.
func (a *app) dataDirectory(cmd *cobra.Command) (string, error) {
	dir := a.flags.data
	if dir == "" && a.flags.config == "" {
		if own, err := userDirectory(); err == nil && checkDirectory(own) == nil {
			return own, nil // that of serve
		}
		return "", newUsageError(cmd, "no data directory is given; write --data DIR, or -c FILE of the configuration that names it")
	}
	if dir == "" {
		c, err := a.load(cmd)
		if err != nil {
			return "", err
		}
		if dir = c.Router.Dir; dir == "" {
			return "", newUsageError(cmd, "%s names no data directory, so that everything is in memory; add data: DIR to it", a.flags.config)
		}
	}
	return dir, checkDirectory(dir)
}

// errMissing says that a data directory does not exist yet.
var errMissing = errors.New("does not exist yet: the first run or watch with it makes it")

// startableDirectory is dataDirectory, but also accepts a directory that the first run of the configuration would
// make.
func (a *app) startableDirectory(cmd *cobra.Command) (string, error) {
	dir, err := a.dataDirectory(cmd)
	if !errors.Is(err, errMissing) {
		return dir, err
	}
	if a.flags.config == "" {
		return "", &usageError{err: fmt.Errorf("%w; name the configuration with -c FILE, so that it is made now", err)}
	}
	c, failed := a.load(cmd)
	switch {
	case failed != nil:
		return "", failed
	case c.Transport != nil:
		return "", &usageError{err: fmt.Errorf("%w, and the state is kept in Kafka; start the pipeline first: vokter-stream run -c %s", err, a.flags.config)}
	}
	return dir, nil
}

// checkDirectory returns an error if dir holds no store. Opening it would create one.
func checkDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &usageError{err: fmt.Errorf("the data directory %s %w", dir, errMissing)}
	case err != nil:
		why := err
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			why = pe.Err
		}
		return fmt.Errorf("the data directory %s cannot be read: %w", dir, why)
	}
	for _, e := range entries {
		if isStoreFile(e.Name()) {
			return nil
		}
	}
	if isCache(dir) {
		return nil
	}
	return &usageError{err: fmt.Errorf("%s is no data directory of vokter-stream: nothing was ever watched there", dir)}
}

// isStoreFile reports whether a store has a file of that name. One such file is enough to take the
// directory for a store; opening it reports what is missing.
func isStoreFile(name string) bool {
	for _, pattern := range []string{"MANIFEST-*", "marker.*", "[0-9]*.sst", "[0-9]*.log"} {
		if ok, _ := filepath.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// originFile in a data directory holds the origin of the subscriptions of the process that last worked there.
const originFile = "origin"

// writeOrigin writes the file of the data directory of cfg, if its state is there.
func writeOrigin(cfg vokter.Config) error {
	if cfg.Dir == "" || cfg.Transport != nil || originOf(cfg.Dir) == cfg.Origin {
		return nil
	}
	return os.WriteFile(filepath.Join(cfg.Dir, originFile), []byte(cfg.Origin), 0o600)
}

// originOf returns what the file of the data directory dir holds, or an empty string.
func originOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, originFile))
	if dir == "" || err != nil {
		return ""
	}
	return string(b)
}

// isCache reports whether the data directory dir holds a copy of state that is kept in Kafka.
func isCache(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, transportKafka))
	return err == nil && info.IsDir()
}

// cacheError says that the data directory dir is only a cache of state in Kafka and cannot be
// read without a process. silent is the reason why no process answered for it.
func cacheError(dir string, silent error) error {
	return fmt.Errorf("%s is a cache of state that is kept in Kafka, and the process that runs on it, if any, does not answer (%w): "+
		"start one with run, or name the data directory of one that runs", dir, silent)
}

// process answers requests of the API about a data directory. It is the process that runs the directory or, where there
// is none, a Router in this process.
type process struct {
	*client.Client
	router *vokter.Router // nil where another process runs the directory
	out    *results       // what the verb prints
}

// ask calls do with p and prints the results.
func (a *app) ask(ctx context.Context, p process, do func(context.Context, process) error) error {
	p.out = a.newResults()
	p.out.stopped = p.router != nil
	return errors.Join(do(ctx, p), p.out.flush())
}

// List returns the pages and receivers that f selects. A Router in this process has no sinks of its own, so that those
// which subscriptions name are added.
func (p process) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	l, err := p.Client.List(ctx, f)
	if p.router != nil && err == nil {
		for _, page := range l.Pages {
			for _, s := range page.Subscriptions {
				l.Receivers = withUnused(l.Receivers, s.Sinks)
			}
		}
	}
	return l, err
}

// Backup writes a consistent copy of the store to w. In this process it does not become a response in memory.
func (p process) Backup(ctx context.Context, w io.Writer) error {
	if p.router != nil {
		return p.router.Backup(ctx, w)
	}
	return p.Client.Backup(ctx, w)
}

// withDirectory is withProcess for the data directory that the flags name.
func (a *app) withDirectory(cmd *cobra.Command, do func(context.Context, process) error) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	return a.withProcess(cmd.Context(), dir, do)
}

// withProcess calls do with the process that runs the data directory dir or, where there is none, a Router of this
// process that only carries out commands.
func (a *app) withProcess(ctx context.Context, dir string, do func(context.Context, process) error) error {
	c, silent := findProcess(ctx, dir)
	switch {
	case c != nil:
		defer c.Close()
		return a.ask(ctx, process{Client: c}, do)
	case errors.Is(silent, manage.ErrToken):
		return silent
	case isCache(dir):
		return cacheError(dir, silent)
	}
	return a.withRouter(ctx, vokter.Config{Dir: dir, Mode: vokter.ModeCommands}, silent, do)
}

// withDelivery is withProcess, except that the Router of this process delivers with the sinks of the configuration
// before it ends. Then report is called, with another one. If there is no sink of the name sink, nothing is
// delivered; an empty name stands for all sinks.
func (a *app) withDelivery(cmd *cobra.Command, dir, sink string, do, report func(context.Context, process) error) error {
	running, silent := findProcess(cmd.Context(), dir)
	switch {
	case running != nil:
		defer running.Close()
		return a.ask(cmd.Context(), process{Client: running}, func(ctx context.Context, m process) error {
			if err := a.checkSink(cmd, m, sink); err != nil {
				return err
			}
			if err := do(ctx, m); err != nil {
				return err
			}
			return report(ctx, m)
		})
	case isCache(dir):
		return cacheError(dir, silent)
	case a.flags.config == "":
		return newUsageError(cmd, "no process runs on %s, or none that can be reached (%w): to deliver without one, name the sinks with -c FILE", dir, silent)
	}
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	if c.Transport != nil {
		closeSinks(c.Router.Sinks)
		return cacheError(dir, silent)
	}
	if err := checkSinkInConfig(cmd, sink, c.Router); err != nil {
		closeSinks(c.Router.Sinks)
		return err
	}
	c.Router.Mode = vokter.ModeDeliver
	if err := a.withRouter(cmd.Context(), c.Router, silent, do); err != nil {
		return err
	}
	return a.withProcess(cmd.Context(), dir, report)
}

// findProcess returns a client of the process that runs the data directory dir, or nil and the
// reason why there is none. It ignores the file DATA/listen of a killed process, even where
// another process listens at that address now.
func findProcess(ctx context.Context, dir string) (*client.Client, error) {
	c, err := manage.Find(dir)
	if err != nil {
		return nil, err
	}
	p, err := c.Process(ctx)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Type == client.ProblemUnauthorized {
		err = fmt.Errorf("%w in the data directory", err)
	}
	if err == nil && !sameDirectory(dir, p.Data) {
		err = fmt.Errorf("the process that answers has the data directory %s", p.Data)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func sameDirectory(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// withRouter runs a Router of cfg, calls do with it and lets it finish. silent is the reason why no process answered
// for the directory.
func (a *app) withRouter(ctx context.Context, cfg vokter.Config, silent error, do func(context.Context, process) error) error {
	cfg.Logger = a.flags.logger(a.stderr, slog.LevelWarn)
	r, err := a.newRouter(cfg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		switch {
		case errors.Is(err, vokter.ErrInUse) && errors.Is(silent, manage.ErrNoAddress):
			return fmt.Errorf("%w. It cannot be asked meanwhile: it is still starting, or its log says why it cannot listen", err)
		case errors.Is(err, vokter.ErrInUse):
			return fmt.Errorf("%w, which cannot be asked: %w", err, silent)
		}
		return cmp.Or(err, errors.New("interrupted before anything was done"))
	case <-r.Running():
	}
	own, err := manage.Own(r)
	if err == nil {
		err = a.ask(ctx, process{Client: own, router: r}, do)
	}
	r.Finish()
	return errors.Join(err, <-ended)
}

// printLanes writes to standard error which share of the lanes m has, if other processes have
// some.
func (a *app) printLanes(ctx context.Context, m process) error {
	p, err := m.Process(ctx)
	if err != nil || p.Lanes == nil {
		return err
	}
	if p.Lanes.Owned < p.Lanes.All {
		fmt.Fprintf(a.stderr, "vokter-stream: this process owns %d of %s; other processes have the rest\n", p.Lanes.Owned, countNoun(p.Lanes.All, "lane"))
	}
	if p.Lanes.Restoring > 0 {
		fmt.Fprintf(a.stderr, "vokter-stream: what is in %s is still being restored\n", countNoun(p.Lanes.Restoring, "lane"))
	}
	return nil
}
