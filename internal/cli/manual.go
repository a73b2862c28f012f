package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manual() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Writes the manual pages to a directory",
		Example: `  vokter-stream man ~/.local/share/man/man1
  man vokter-stream-watch`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "name one directory; write %s DIR", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeDirectories,
		RunE:              func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes a page for root and for each of its verbs to dir, and makes that.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the manual pages cannot be written: %w", err)
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: buildInfo().Version, Manual: "Vokter"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("the manual pages cannot be written: %w", err)
	}
	return nil
}
