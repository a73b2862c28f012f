package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/internal/render"
)

const anyURL = "http://127.0.0.1:1/"

// TestUsage holds mistakes in the command line to exit code 2, an empty standard output
// and a message that helps.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "no verb is given; to begin with, write one of\n  vokter-stream serve "},
		{"lnt", `unknown verb "lnt"; did you mean "lint"?`},
		{"help lnt", `unknown verb "lnt"; did you mean "lint"?`},
		{"devour x", `unknown verb "devour"; known are apply, backup, cancel, check, completion, demo,`},
		{"watch", "no URL is given"},
		{"watch example a", `"example" is not an absolute URL such as https://example.com/page`},
		{"watch usage_test.go a", "usage_test.go is a path; write the file as a URL: file:///"},
		{"watch file://host/a a", "only files of this machine can be read"},
		{"watch " + anyURL + " a --allow-files=", "is no path of a file or folder"},
		{"watch ftp://example.com/ a", "only http, https and file can be watched"},
		{"watch " + anyURL + " !!!", `"!!!" has no word in it`},
		{"watch " + anyURL + " a --chekcs 1", `unknown flag --chekcs; did you mean "--checks"?`},
		{"watch " + anyURL + " a --brokers x:1", "--brokers is an option of --transport kafka; add that"},
		{"watch " + anyURL + " a --transport local --topic-prefix x", "--topic-prefix is an option of --transport kafka; add that"},
		{"watch " + anyURL + " a --transport kafka --brokers x:1 --topic-prefix=", "--topic-prefix: it is empty; is a variable not set?"},
		{"watch " + anyURL + " a --transport kafka --brokers x", `--brokers: "x" is not HOST:PORT`},
		{"watch " + anyURL + " a --transport kafka --brokers=", "--brokers: at least one broker is required"},
		{"watch " + anyURL + " a --transport kafka --brokers x:1,y:z --topic-prefix a/", "\nvokter-stream: --topic-prefix: "},
		{"watch " + anyURL + " a -x", "unknown flag -x"},
		{"watch " + anyURL + " -5", "write -- before keywords that begin with a dash, as in -- -5"},
		{"watch " + anyURL + " a --checks 0", "--checks: must be at least 1, not 0"},
		{"watch " + anyURL + " a --checks many", `--checks: "many" is not a whole number`},
		{"watch " + anyURL + " a --stem=maybe", `--stem: "maybe" is not true or false`},
		{"watch " + anyURL + " a --every soon", `--every: "soon" is not a duration`},
		{"watch " + anyURL + " a --every -1s", `--every: "-1s" is negative`},
		{"watch " + anyURL + " a --interval 10", `--interval: "10" has no unit; write 10s, 10m or 10h`},
		{"watch " + anyURL + " a --interval 0s", "--interval: must be longer than 0"},
		{"watch " + anyURL + " a --quiet 7-9", `--quiet: "7-9" is not what quiet hours look like`},
		{"watch " + anyURL + " a --events added,remove", `--events: "remove" is not known; write added or removed`},
		{"watch " + anyURL + " a --events=", "--events: name added, removed or both"},
		{"watch " + anyURL + " a --select p[", `--select: "p[" is not a CSS selector`},
		{"watch " + anyURL + " a --remove {to:p}", "--remove: a range needs from"},
		{"watch " + anyURL + " a --remove {to:", "--remove: not YAML"},
		{"watch " + anyURL + " a --select=", "--select: a selector must not be empty"},
		{"watch " + anyURL + " a --ignore (", `--ignore: "(" is not a regular expression`},
		{"watch " + anyURL + " a --match words", `--match: "words" is not known; write phrase or terms`},
		{"watch " + anyURL + " a --language klingonish", `--language: "klingonish" is not a language tag`},
		{"watch " + anyURL + " a --snippet-offset 501", "--snippet-offset: 501 is not between 0 and 500"},
		{"watch " + anyURL + " a --confirm -1", "--confirm: -1 is not between 1 and 1000"},
		{"watch " + anyURL + " a --flip-flop 1", "--flip-flop: 1 is not between 2 and 50; 0 turns it off"},
		{"watch " + anyURL + " a --min-change few", `--min-change: "few": it is neither a number of tokens such as 5, nor a share of the text such as 2% or 0.5%`},
		{"watch " + anyURL + " a --flip-flop 51", "--flip-flop: 51 is not between 2 and 50"},
		{"watch " + anyURL + " a --confirm 0", "--confirm: 0 is not between 1 and 1000"},
		{"watch " + anyURL + " a --data=", "--data: it is empty; is a variable not set?"},
		{"watch " + anyURL + " a --summary=", "--summary: it is empty; is a variable not set?"},
		{"watch " + anyURL + " a --allow here", `--allow: "here" is not a network`},
		{"watch " + anyURL + " a --transport kafka", "--transport kafka needs brokers; add --brokers HOST:PORT"},
		{"watch " + anyURL + " a --transport kafak", `--transport: unknown transport "kafak"; did you mean "kafka"?`},
		{"watch " + anyURL + " a --transport=", `--transport: unknown transport ""`},
		{"lint -c c.yaml --transport nats", `--transport: unknown transport "nats"`},
		{"watch " + anyURL + " a --format xml", `--format: "xml" is neither text nor json`},
		{"watch " + anyURL + " a --log-level loud", `--log-level: "loud" is none of debug, info, warn and error`},
		{"watch " + anyURL + " a --log-format xml", `--log-format: "xml" is none of text, logfmt and json`},
		{"watch " + anyURL + " a --summary none/s.json", "--summary: none/s.json cannot be written to: no such file or directory"},
		{"watch " + anyURL + " a --summary .", "--summary: . is a directory"},
		{"run", "no configuration is given"},
		{"run -c", "flag needs an argument"},
		{"run -c none.yaml --data=", "--data: it is empty; is a variable not set?"},
		{"run -c none.yaml", "none.yaml: the file none.yaml does not exist"},
		{"run x", `run takes no arguments, but got "x"`},
		{"lint", "no configuration is given"},
		{"list", "no data directory is given; write --data DIR"},
		{"list --data none", "the data directory none does not exist"},
		{"list --data .", ". is no data directory of vokter-stream"},
		{"list --data=", "--data: it is empty; is a variable not set?"},
		{"list -c none.yaml", "none.yaml: the file none.yaml does not exist"},
		{"list --data none x", `list takes no arguments, but got "x"`},
		{"list --data none --url x", `"x" is not an absolute URL`},
		{"list --data none --allow 127.0.0.1", "unknown flag --allow"},
		{"cancel --data none", "no URL is given"},
		{"cancel x --data none", `"x" is not an absolute URL`},
		{"cancel " + anyURL, "no data directory is given"},
		{"cancel " + anyURL + " b --data none", `cancel takes one URL, but got "b" as well`},
		{"cancel " + anyURL + " --data none", "the data directory none does not exist"},
		{"resume " + anyURL + " --data none", "the data directory none does not exist"},
		{"explain " + anyURL + " --data none", "the data directory none does not exist"},
		{"backup", "no directory is given"},
		{"backup a b", `backup takes one directory, but got "b" as well`},
		{"backup .", ". is not empty; name a new directory"},
		{"backup usage_test.go", "a copy cannot be made there"},
		{"backup new --data none", "the data directory none does not exist"},
		{"replay", "no configuration is given"},
		{"replay -c none.yaml --since soon", `--since: "soon" is neither a duration such as 24h nor a time`},
		{"replay -c none.yaml --since 2999-01-01", `--since: "2999-01-01" is in the future`},
		{"replay -c none.yaml --url x", `"x" is not an absolute URL`},
		{"watch " + anyURL + " a --min-free 12", `--min-free: "12" has no unit`},
		{"demo --changes 0", "--changes: must be at least 1, not 0"},
		{"demo --data d", "unknown flag --data"},
		{"version --format xml", `"xml" is neither text nor json`},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := runCLI(t, strings.Fields(c.args)...)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q, want 2 and %q", r.code, r.stdout, r.stderr, c.want)
			}
		})
	}
	expectExit(t, 2, `"mo-fri" is no day of the week (0 to 7, or sun to sat)`, "watch", "https://example.com/", "--interval", "0 9 * * mo-fri")
}

func TestAllMistakesOfWatch(t *testing.T) {
	r := runCLI(t, "watch", "nowhere", "!!!", "--match", "x", "--events", "y")
	for _, want := range []string{"nowhere", "!!!", "--match", "--events"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%s is not in %s", want, r.stderr)
		}
	}
}

func TestUnwritableDirectory(t *testing.T) {
	plain := file(t, "plain", "")
	r := runCLI(t, "watch", anyURL, "a", "--data", filepath.Join(plain, "d"), "--checks", "1")
	if r.code != 1 || !strings.Contains(r.stderr, "cannot be used: not a directory; a part of this path is a file; use another directory") {
		t.Errorf("got %+v", r)
	}
	if os.Geteuid() == 0 {
		t.Skip("the rest needs a user whom rights bind")
	}
	locked := filepath.Join(t.TempDir(), "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	r = runCLI(t, "watch", anyURL, "a", "--data", locked, "--checks", "1")
	if r.code != 1 || !strings.Contains(r.stderr, "permission denied; give this user the right") {
		t.Errorf("got %+v", r)
	}
}

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
