package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/internal/render"
)

// TestHelpFits checks that the help of every verb fits into 80 columns, and that those that check
// pages list the exit codes.
func TestHelpFits(t *testing.T) {
	root := (&app{}).newRootCommand()
	var visit func(c *cobra.Command, path []string)
	visit = func(c *cobra.Command, path []string) {
		if path == nil || path[0] != "completion" { // cobra's own texts
			r := runCLI(t, append(slices.Clone(path), "--help")...)
			if r.code != 0 {
				t.Errorf("%v: got %+v", path, r)
			}
			for line := range strings.Lines(r.stdout) {
				if render.Columns(strings.TrimSuffix(line, "\n")) > helpColumns {
					t.Errorf("%v: %q is wider than %d columns", path, line, helpColumns)
				}
			}
			if want := path == nil || path[0] == "watch" || path[0] == "run"; want != strings.Contains(r.stdout, exitCodes) {
				t.Errorf("%v: exit codes are listed: %v, want %v", path, !want, want)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub, append(slices.Clone(path), sub.Name()))
			}
		}
	}
	visit(root, nil)
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"wat"}, "watch\tWatches one page and prints what changes"},
		{[]string{"watch", "--format", ""}, "text\njson"},
		{[]string{"run", "--transport", "k"}, "kafka"},
		{[]string{"run", "-c", ""}, "yaml\nyml\n:8"},
		{[]string{"list", "--data", ""}, ":16"},
		{[]string{"explain", ""}, ":4"}, // no file names
	} {
		if r := runCLI(t, append([]string{"__complete"}, c.line...)...); r.code != 0 || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%q: got %+v, want %q", c.line, r, c.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := runCLI(t, "completion", shell); r.code != 0 || !strings.Contains(r.stdout, "vokter-stream") {
			t.Errorf("%s: exit code %d, stderr %s", shell, r.code, r.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"watch", "--help"}, {"help", "run"}} {
		r := runCLI(t, args...)
		if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, "Usage:") {
			t.Errorf("%v: got %+v", args, r)
		}
	}
}

func TestVersion(t *testing.T) {
	if r := runCLI(t, "version"); r.code != 0 || !strings.HasPrefix(r.stdout, "vokter-stream ") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("got %+v", r)
	}
	if got, want := runCLI(t, "--version"), runCLI(t, "version"); got != want {
		t.Errorf("--version: got %+v, want %+v", got, want)
	}
	var b build
	if err := json.Unmarshal([]byte(runCLI(t, "version", "--format", "json").stdout), &b); err != nil || b.Version == "" || b.Go == "" {
		t.Errorf("got %+v, %v", b, err)
	}
	b = build{Version: "v1.2.3", Revision: "0123456789abcdef", Modified: true, Go: "go1.26", OS: "linux", Arch: "amd64"}
	if got, want := b.String(), "vokter-stream v1.2.3 (0123456789ab, modified) go1.26 linux/amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
