package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/sinks/stdout"
)

// build says what this program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func buildInfo() build {
	b := build{Version: vokter.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := "vokter-stream " + b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return fmt.Sprintf("%s %s %s/%s", s, b.Go, b.OS, b.Arch)
}

func (a *app) version() *cobra.Command {
	return a.flags.with(&cobra.Command{
		Use:   "version",
		Short: "Says which version this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.flags.format == stdout.FormatJSON {
				return json.NewEncoder(a.stdout).Encode(buildInfo())
			}
			_, err := fmt.Fprintln(a.stdout, buildInfo())
			return err
		},
	}, outputFlags)
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if strings.HasPrefix(cmd.Use, cmd.Name()+" -c FILE") && len(args) > 0 && !cmd.Flags().Changed("config") {
		return usage(cmd, "%s takes no arguments, but got %q; write %s -c %[2]s", cmd.Name(), args[0], cmd.CommandPath())
	}
	if len(args) > 0 {
		return usage(cmd, "%s takes no arguments, but got %q", cmd.Name(), args[0])
	}
	return nil
}
