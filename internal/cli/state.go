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
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/portable"
)

// stateLine is the JSON of export and import.
type stateLine struct {
	Kind      string `json:"kind"`
	Directory string `json:"directory"`
	// Place is the data directory, or the cluster and its prefix.
	Place  string   `json:"place"`
	States int      `json:"states"`
	Left   []string `json:"left_behind,omitempty"`
}

func (a *app) stateVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Moves all state between a data directory and Kafka",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			verbs := verbNames(cmd)
			if len(args) == 0 {
				return newUsageError(cmd, "write %s export DIR, or import DIR", cmd.CommandPath())
			}
			return newUsageError(cmd, "unknown verb %q; %s", args[0], nearest.Hint(args[0], verbs))
		},
	}
	cmd.AddCommand(a.stateExportVerb(), a.stateImportVerb())
	return cmd
}

func (a *app) stateExportVerb() *cobra.Command {
	var leave bool
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "export DIR",
		Short: "Writes all state of a stopped pipeline to a new directory",
		Example: `  vokter-stream state export /backup/state --data /var/lib/vokter
  vokter-stream state export /backup/state -c vokter.yaml
  vokter-stream state export /backup/st --transport kafka --brokers kafka-1:9092`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.exportState(cmd, args, leave) },
	}, outputFlags|pipelineFlags|configFlags)
	cmd.Flags().BoolVar(&leave, "leave-unhandled", false, "export also while unhandled messages are left, without these messages")
	return cmd
}

func (a *app) stateImportVerb() *cobra.Command {
	return a.flags.addTo(&cobra.Command{
		Use:   "import DIR",
		Short: "Imports an export into a new data directory or new topics",
		Example: `  vokter-stream state import /backup/st --transport kafka --brokers kafka-1:9092
  vokter-stream state import /backup/state --data /var/lib/vokter`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.importState(cmd, args) },
	}, outputFlags|pipelineFlags|configFlags)
}

// stateLocation says where state is kept.
type stateLocation struct {
	kafka *kafka.Config // nil: in dir
	dir   string
	now   func() time.Time
}

func (p stateLocation) String() string {
	if p.kafka == nil {
		return p.dir
	}
	return "the topics " + cmp.Or(p.kafka.Prefix, kafka.DefaultPrefix) + "*"
}

// stateLocation returns where the flags or the configuration say that state is kept.
func (a *app) stateLocation(cmd *cobra.Command, args []string) (stateLocation, error) {
	switch {
	case len(args) == 0:
		return stateLocation{}, newUsageError(cmd, "no directory is given; write %s DIR", cmd.CommandPath())
	case len(args) > 1:
		return stateLocation{}, newUsageError(cmd, "%s takes one directory, but got %q as well", cmd.Name(), args[1])
	}
	p := stateLocation{dir: a.flags.data, now: a.routerClock()}
	if a.flags.config == "" {
		var err error
		if p.kafka, err = a.flags.kafkaConfig(cmd, nil); err != nil {
			return p, err
		}
	} else {
		c, err := a.load(cmd)
		if err != nil {
			return p, err
		}
		p.kafka, p.dir = kafkaConfigOf(c.Transport), c.Router.Dir
	}
	if p.kafka == nil && p.dir == "" {
		return p, newUsageError(cmd, "no data directory and no cluster is given; write --data DIR, --transport kafka --brokers HOST:PORT, or -c FILE")
	}
	return p, nil
}

// kafkaConfig returns p as the Config of package kafka.
func (p stateLocation) kafkaConfig(log *slog.Logger) kafka.Config {
	c := *p.kafka
	c.Topics, c.Logger, c.Now = vokter.Topology(), log, p.now
	return c
}

// localConfig returns p as the Config of package local.
func (p stateLocation) localConfig(log *slog.Logger) local.Config {
	return local.Config{Dir: p.dir, Topics: vokter.Topology(), Logger: log, Now: p.now}
}

func (a *app) exportState(cmd *cobra.Command, args []string, leave bool) error {
	p, err := a.stateLocation(cmd, args)
	if err != nil {
		return err
	}
	if p.kafka == nil {
		if err := checkDirectory(p.dir); err != nil {
			return err
		}
		if isCache(p.dir) {
			return newUsageError(cmd, "%s is a cache of state that is kept in Kafka; name the cluster with -c FILE, or --transport kafka --brokers HOST:PORT", p.dir)
		}
		if isInside(args[0], p.dir) {
			return newUsageError(cmd, "nothing was exported: %s and the data directory %s are one in the other; name another directory", args[0], p.dir)
		}
	}
	w, err := portable.Create(args[0], vokter.Version())
	if err != nil {
		return &usageError{err: err}
	}
	left, err := exportFrom(cmd.Context(), p, w, leave, a.flags.logger(a.stderr, slog.LevelInfo))
	if errors.Is(err, portable.ErrUnhandled) {
		err = fmt.Errorf("%w; or leave them behind with --leave-unhandled", err)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	m, err := w.Close()
	if err != nil {
		return err
	}
	out := a.newResults()
	out.printMoved(stateLine{Kind: "state_export", Directory: args[0], Place: p.String(), Left: left}, m)
	return out.flush()
}

func exportFrom(ctx context.Context, p stateLocation, w *portable.Writer, leave bool, log *slog.Logger) ([]string, error) {
	if p.kafka != nil {
		return kafka.Export(ctx, p.kafkaConfig(log), w, leave)
	}
	return local.Export(p.localConfig(log), w, leave)
}

func (a *app) importState(cmd *cobra.Command, args []string) error {
	p, err := a.stateLocation(cmd, args)
	if err != nil {
		return err
	}
	e, err := portable.Open(args[0])
	if err != nil {
		return &usageError{err: err}
	}
	log := a.flags.logger(a.stderr, slog.LevelInfo)
	if p.kafka != nil {
		err = kafka.Import(cmd.Context(), p.kafkaConfig(log), e)
	} else {
		err = local.Import(p.localConfig(log), e)
	}
	if err != nil {
		return err
	}
	out := a.newResults()
	out.printMoved(stateLine{Kind: "state_import", Directory: args[0], Place: p.String()}, e.Manifest)
	return out.flush()
}

// printMoved prints what was exported or imported.
func (r *results) printMoved(l stateLine, m portable.Manifest) {
	l.States = m.States()
	r.printJSON(l)
	for _, left := range l.Left {
		r.printLine("left behind: messages %s", left)
	}
	what := countNoun(l.States, "value") + " of state"
	if l.Kind == "state_import" {
		r.printLine("imported %s into %s: %s", l.Directory, l.Place, what)
		return
	}
	r.printLine("%s holds what was in %s: %s", l.Directory, l.Place, what)
	r.printLine("once it is imported elsewhere, do not start a pipeline on %s again: both would tell everybody", l.Place)
}

// backupLine is the JSON of backup.
type backupLine struct {
	Kind      string `json:"kind"`
	Data      string `json:"data"`
	Directory string `json:"directory"`
}

func (a *app) backupVerb() *cobra.Command {
	return a.flags.addTo(&cobra.Command{
		Use:   "backup DIR (--data DIR | -c FILE)",
		Short: "Copies the data directory, even while a process runs on it",
		Long:  "Copies the data directory to a new directory, even while a process runs on it. To use the copy, name it with --data.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return newUsageError(cmd, "no directory is given; write %s DIR --data DIR", cmd.CommandPath())
			case len(args) > 1:
				return newUsageError(cmd, "%s takes one directory, but got %q as well", cmd.Name(), args[1])
			}
			if err := checkEmptyTarget(args[0]); err != nil {
				return newUsageError(cmd, "%w", err)
			}
			data, err := a.dataDirectory(cmd)
			if err != nil {
				return err
			}
			if isInside(args[0], data) {
				return newUsageError(cmd, "no backup was made: %s and the data directory %s are one in the other; name another directory", args[0], data)
			}
			return a.withProcess(cmd.Context(), data, func(ctx context.Context, m process) error {
				if err := copyStore(ctx, m.Backup, args[0]); err != nil {
					return err
				}
				return a.printDone(backupLine{"backup", data, args[0]}, "%s is a copy of %s; to go on from it, name it with --data", args[0], data)
			})
		},
	}, outputFlags|directoryFlags|configFlags)
}

// checkEmptyTarget returns an error if dir exists and is not empty.
func checkEmptyTarget(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("a copy cannot be made there: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty; name a new directory", dir)
	}
	return nil
}

// isInside reports whether dir, which need not exist, is the directory data or would be in it.
func isInside(dir, data string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
			break
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir) // look for the part that exists
	}
	for !sameDirectory(dir, data) {
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return true
}

// copyStore unpacks a backup into dir.
func copyStore(ctx context.Context, backup func(context.Context, io.Writer) error, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := backup(ctx, w)
		_ = w.CloseWithError(err) // always nil
		packed <- err
	}()
	err := vokter.UnpackBackup(r, dir)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // an error may come at the very end
	} else {
		err = fmt.Errorf("no backup was made: %w", errors.Unwrap(err)) // it says that nothing was restored
	}
	_ = r.CloseWithError(err)
	if perr := <-packed; perr != nil && (err == nil || !errors.Is(perr, err)) {
		return perr // the error of unpacking follows from it
	}
	return err
}
