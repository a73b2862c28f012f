package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/store"
)

// healthTimeout is how long health waits for an answer.
const healthTimeout = 5 * time.Second

func (a *app) healthVerb() *cobra.Command {
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "health (--data DIR | -c FILE)",
		Short: "Says whether a process runs on a data directory and is at work",
		Long: "Asks the process that runs on a data directory whether it is at work, for the health check of a container. It waits at " +
			"most 5 seconds.\n\n" +
			"It ends with 0 if the process is at work. Otherwise it ends with 1 and says why not: no process runs, or what the " +
			"process waits for, such as brokers or room on the disk.",
		Example: "  vokter-stream health --data ./data",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.dataDirectory(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			running, err := findProcess(ctx, dir)
			if errors.Is(err, manage.ErrNoAddress) {
				if who := store.LockHolder(dir); who != "" || isCache(dir) {
					return fmt.Errorf("the process on %s%s cannot be asked: it is still starting, or its log says why it cannot listen", dir, who)
				}
				return fmt.Errorf("no process runs on %s", dir)
			}
			if err != nil {
				return fmt.Errorf("the process on %s does not answer: %w", dir, err)
			}
			defer running.Close()
			if err := running.Ready(ctx); err != nil {
				return fmt.Errorf("the process on %s answers: %w", dir, err)
			}
			out := a.newResults()
			out.printDone("health", struct {
				OK bool `json:"ok"`
			}{true}, "ok")
			return out.flush()
		},
	}, askFlags)
	cmd.Flags().Lookup("data").Usage = "the data directory `DIR` of a process that runs"
	return cmd
}
