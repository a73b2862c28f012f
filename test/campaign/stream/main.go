// Command stream is vokter-stream for the crash campaign: its clock can be set, and its
// transactions can be broken on purpose, to prove that the campaign would notice.
package main

import (
	"os"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/cli"
)

func main() { os.Exit(cli.Main(applyEnvironment)) }

// applyEnvironment does what the environment asks for: VOKTER_CLOCK_FILE names a file with the setting of
// the clock, VOKTER_SABOTAGE=1 breaks the transactions of a Router that does all of its work.
func applyEnvironment(cfg *vokter.Config) {
	if file := os.Getenv("VOKTER_CLOCK_FILE"); file != "" {
		cfg.Now = fileClock(file)
	}
	if os.Getenv("VOKTER_SABOTAGE") == "1" && cfg.Mode == vokter.ModeAll {
		cfg.Transport = &splitCommitTransport{Transport: cfg.Transport}
	}
}
