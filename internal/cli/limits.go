package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter"
)

// limitFlags are those of watch and run that bound and report what is done.
type limitFlags struct {
	checks  int
	every   time.Duration
	summary string
}

func (l *limitFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&l.checks, "checks", 0, "check every page `N` times (at most one request per second and host, unless configured), deliver the notifications, and exit")
	fs.Var(&duration{&l.every, 0}, "every", "check every page after this `DURATION`, whatever its interval; 0s checks again at once")
	fs.StringVar(&l.summary, "summary", "", "at exit write the numbers of checks, versions, changes and notifications to `FILE`, as JSON")
}

// apply puts the flags that were given into c.
func (l *limitFlags) apply(cmd *cobra.Command, c *vokter.Config) error {
	if cmd.Flags().Changed("checks") && l.checks < 1 {
		return usage(cmd, "--checks: %d is not at least 1; leave it out to go on without end", l.checks)
	}
	c.Checks = l.checks
	if cmd.Flags().Changed("every") {
		c.Every = &l.every
	}
	if l.summary != "" {
		if err := checkSummary(l.summary); err != nil {
			return usage(cmd, "--summary: %w", err)
		}
	}
	return nil
}
