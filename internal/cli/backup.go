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
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
)

// backupLine is the JSON of backup.
type backupLine struct {
	Data      string `json:"data"`
	Directory string `json:"directory"`
}

func (a *app) backupVerb() *cobra.Command {
	return a.flags.addTo(&cobra.Command{
		Use:   "backup DIR (--data DIR | -c FILE)",
		Short: "Copies the data directory, even while a process runs on it",
		Long:  "Copies the data directory to a new directory, even while a process runs on it, with the receivers and the token that are kept there. To use the copy, name it with --data.",
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := onlyArg(cmd, args, "directory")
			if err != nil {
				return err
			}
			if err := checkEmptyTarget(to); err != nil {
				return newUsageError(cmd, "%w", err)
			}
			data, err := a.dataDirectory(cmd)
			if err != nil {
				return err
			}
			if isInside(to, data) {
				return newUsageError(cmd, "no backup was made: %s and the data directory %s are one in the other; name another directory", to, data)
			}
			return a.withProcess(cmd.Context(), data, func(ctx context.Context, m process) error {
				if err := copyStore(ctx, m.Backup, to); err != nil {
					return err
				}
				if err := copyBeside(data, to); err != nil {
					return fmt.Errorf("%s is a copy of the store of %s, but not of all beside it: %w", to, data, err)
				}
				m.out.printDone("backup", backupLine{data, to}, "%s is a copy of %s; to go on from it, name it with --data", to, data)
				return nil
			})
		},
	}, askFlags)
}

// copyBeside copies what a process keeps beside its store: the receivers that were made on the web page, the token and
// the logins, and who works there.
func copyBeside(from, to string) error {
	for _, name := range append([]string{config.ReceiversFile, originFile}, manage.LoginFiles...) {
		b, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
