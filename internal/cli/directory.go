package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
)

// dataDirectory returns the data directory that the flags name.
func (a *app) dataDirectory(cmd *cobra.Command) (string, error) {
	dir := a.flags.data
	if dir == "" && a.flags.config == "" {
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

// isCache reports whether the data directory dir holds a copy of state that is kept in Kafka.
func isCache(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, transportKafka))
	return err == nil && info.IsDir()
}

// cacheError says that the data directory dir is only a cache of state in Kafka and cannot be
// read without a process. silent is the reason why no process answered for it.
func cacheError(dir string, silent error) error {
	return fmt.Errorf("%s is a cache of state that is kept in Kafka, and the process that runs on it, if any, does not answer (%w): "+
		"start one with run, with listen: in its configuration, or name the data directory of one that runs", dir, silent)
}

// withManager calls do with the Manager of the data directory dir: the process that runs it or,
// where there is none, a Router of this process that only carries out commands.
func (a *app) withManager(ctx context.Context, dir string, do func(context.Context, manage.Manager) error) error {
	c, silent := findProcess(ctx, dir)
	switch {
	case c != nil:
		defer c.Close()
		return do(ctx, c)
	case errors.Is(silent, manage.ErrToken):
		return silent
	case isCache(dir):
		return cacheError(dir, silent)
	}
	cfg := vokter.Config{Dir: dir, Mode: vokter.ModeCommands, Logger: a.flags.logger(a.stderr, slog.LevelWarn)}
	_, err := a.withRouter(ctx, cfg, silent, func(ctx context.Context, r *vokter.Router) error { return do(ctx, r) })
	return err
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

// withRouter runs a Router of cfg, calls do with it, lets it finish and returns it. silent is the
// reason why no process answered for the directory.
func (a *app) withRouter(ctx context.Context, cfg vokter.Config, silent error, do func(context.Context, *vokter.Router) error) (*vokter.Router, error) {
	r, err := a.newRouter(cfg)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		switch {
		case errors.Is(err, vokter.ErrInUse) && errors.Is(silent, manage.ErrNoAddress):
			return r, fmt.Errorf("%w; a process can be asked while it runs if it was started by run with listen: in its configuration, such as 127.0.0.1:9000; this one was not", err)
		case errors.Is(err, vokter.ErrInUse):
			return r, fmt.Errorf("%w, which cannot be asked: %w", err, silent)
		}
		if err == nil {
			err = errors.New("interrupted before anything was done")
		}
		return r, err
	case <-r.Running():
	}
	err = do(ctx, r)
	r.Finish()
	return r, errors.Join(err, <-ended)
}

// printLanes writes to standard error which share of the lanes m has, if other processes have
// some.
func (a *app) printLanes(ctx context.Context, m manage.Manager) error {
	c, ok := m.(*client.Client)
	if !ok {
		return nil
	}
	p, err := c.Process(ctx)
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
