package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/manage"
)

// backupLine is the JSON of a copy.
type backupLine struct {
	Kind      string `json:"kind"`
	Data      string `json:"data"`
	Directory string `json:"directory"`
}

func (a *app) backup() *cobra.Command {
	return a.flags.with(&cobra.Command{
		Use:   "backup DIR (--data DIR | -c FILE)",
		Short: "Copies the data directory, also of a running process",
		Long:  "Copies the data directory, also of a running process, to a new directory. To go on from the copy, name it with --data.",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage(cmd, "no directory is given; write %s DIR --data DIR", cmd.CommandPath())
			case len(args) > 1:
				return usage(cmd, "%s takes one directory, but got %q as well", cmd.Name(), args[1])
			}
			if err := checkTarget(args[0]); err != nil {
				return usage(cmd, "%w", err)
			}
			data, err := a.directory(cmd)
			if err != nil {
				return err
			}
			if inside(args[0], data) {
				return usage(cmd, "no backup was made: %s and the data directory %s are one in the other; name another directory", args[0], data)
			}
			return a.managed(cmd.Context(), data, func(ctx context.Context, m manage.Manager) error {
				if err := copyStore(ctx, m, args[0]); err != nil {
					return err
				}
				out := a.results()
				out.object(backupLine{"backup", data, args[0]})
				out.text("%s is a copy of %s; to go on from it, name it with --data", args[0], data)
				return out.end()
			})
		},
	}, outputFlags|directoryFlags|configFlags)
}

// checkTarget refuses a directory that something is in.
func checkTarget(dir string) error {
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

// inside reports whether dir, which need not exist, is the directory data or would be in it.
func inside(dir, data string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false // nor can anything be made there
	}
	for {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
			break
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir) // the part that exists decides
	}
	for !sameDirectory(dir, data) {
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return true
}

// copyStore unpacks into dir what m packs.
func copyStore(ctx context.Context, m manage.Manager, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := m.Backup(ctx, w)
		_ = w.CloseWithError(err) // it has no errors
		packed <- err
	}()
	err := vokter.UnpackBackup(r, dir)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // whether it is whole shows at its very end
	}
	_ = r.CloseWithError(err)
	if perr := <-packed; perr != nil && (err == nil || !errors.Is(perr, err)) {
		return perr // it came first: that of unpacking follows from it
	}
	return err
}
