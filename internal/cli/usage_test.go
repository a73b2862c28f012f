package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const anyURL = "http://127.0.0.1:1/"

// TestUsage holds mistakes in the command line to exit code 2, an empty standard output
// and a message that helps.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "no verb is given; to begin with, write one of\n  vokter-stream demo "},
		{"lnt", `unknown verb "lnt"; did you mean "lint"?`},
		{"import x", `unknown verb "import"; known are backup, cancel, completion, demo,`},
		{"man", "name one directory; write vokter-stream man DIR"},
		{"watch", "no URL and no keyword are given"},
		{"watch " + anyURL, "no keyword is given"},
		{"watch example a", `"example" is not an absolute URL such as https://example.com/page`},
		{"watch ftp://example.com/ a", "only http and https can be watched"},
		{"watch " + anyURL + " !!!", `"!!!" has no word in it`},
		{"watch " + anyURL + " a --chekcs 1", `unknown flag --chekcs; did you mean "--checks"?`},
		{"watch " + anyURL + " a --brokers x:1", "--brokers is an option of --transport kafka; add that"},
		{"watch " + anyURL + " a --transport local --topic-prefix x", "--topic-prefix is an option of --transport kafka; add that"},
		{"watch " + anyURL + " a --transport kafka --brokers x:1 --topic-prefix=", "--topic-prefix: it is empty; is a variable not set?"},
		{"watch " + anyURL + " a --transport kafka --brokers x", `--brokers: "x" is not HOST:PORT`},
		{"watch " + anyURL + " a --transport kafka --brokers=", "--brokers: at least one broker is needed"},
		{"watch " + anyURL + " a --transport kafka --brokers x:1,y:z --topic-prefix a/", "\nvokter-stream: --topic-prefix: "},
		{"watch " + anyURL + " a -x", "unknown flag -x"},
		{"watch " + anyURL + " a --checks 0", "--checks: 0 is not at least 1"},
		{"watch " + anyURL + " a --checks many", `--checks: "many" is not a whole number`},
		{"watch " + anyURL + " a --stem=maybe", `--stem: "maybe" is not true or false`},
		{"watch " + anyURL + " a --every soon", `--every: "soon" is not a duration`},
		{"watch " + anyURL + " a --every -1s", `--every: "-1s" is negative`},
		{"watch " + anyURL + " a --interval 10", `--interval: "10" has no unit; write 10s, 10m or 10h`},
		{"watch " + anyURL + " a --interval 0s", `--interval: "0s" is too short`},
		{"watch " + anyURL + " a --events added,remove", `--events: "remove" is not an event; did you mean "removed"?`},
		{"watch " + anyURL + " a --events=", "--events: name added, removed or both"},
		{"watch " + anyURL + " a --select p[", `--select: "p[" is not a CSS selector`},
		{"watch " + anyURL + " a --remove {to:p}", "--remove: a range needs from"},
		{"watch " + anyURL + " a --remove {to:", "--remove: not YAML"},
		{"watch " + anyURL + " a --select=", "--select: a CSS selector must not be empty"},
		{"watch " + anyURL + " a --ignore (", `--ignore: "(" is not a regular expression`},
		{"watch " + anyURL + " a --match words", `--match: "words" is neither phrase nor terms`},
		{"watch " + anyURL + " a --language klingonish", `--language: "klingonish" is not a language tag`},
		{"watch " + anyURL + " a --snippet-offset 501", "--snippet-offset: 501 is not between 0 and 500"},
		{"watch " + anyURL + " a --confirm -1", "--confirm: -1 is not at least 1"},
		{"watch " + anyURL + " a --confirm 0", "--confirm: 0 is not at least 1"},
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
		{"list --data none --sinks --duplicates", "--sinks and --duplicates list different things"},
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
		{"demo --changes 0", "--changes: 0 is not at least 1"},
		{"demo --data d", "unknown flag --data"},
		{"version --format xml", `"xml" is neither text nor json`},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := vs(t, strings.Fields(c.args)...)
			if r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q, want 2 and %q", r.code, r.stdout, r.stderr, c.want)
			}
		})
	}
}

func TestAllMistakesOfWatch(t *testing.T) {
	r := vs(t, "watch", "nowhere", "!!!", "--match", "x", "--events", "y")
	for _, want := range []string{"nowhere", "!!!", "--match", "--events"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%s is not in %s", want, r.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"watch", "--help"}, {"help", "run"}} {
		r := vs(t, args...)
		if r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, "Usage:") {
			t.Errorf("%v: got %+v", args, r)
		}
	}
}

func TestVersion(t *testing.T) {
	if r := vs(t, "version"); r.code != 0 || !strings.HasPrefix(r.stdout, "vokter-stream ") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("got %+v", r)
	}
	if got, want := vs(t, "--version"), vs(t, "version"); got != want {
		t.Errorf("--version: got %+v, want %+v", got, want)
	}
	var b build
	if err := json.Unmarshal([]byte(vs(t, "version", "--format", "json").stdout), &b); err != nil || b.Version == "" || b.Go == "" {
		t.Errorf("got %+v, %v", b, err)
	}
	b = build{Version: "v1.2.3", Revision: "0123456789abcdef", Modified: true, Go: "go1.26", OS: "linux", Arch: "amd64"}
	if got, want := b.String(), "vokter-stream v1.2.3 (0123456789ab, modified) go1.26 linux/amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const threeMistakes = `sinks: {out: {stdout: {}}}
subscriptions:
  - url: https://example.com/
    keyword: [privacy]
    interval: 10
    sinks: [outt]
`

func TestLint(t *testing.T) {
	path := file(t, "c.yaml", threeMistakes)
	r := vs(t, "lint", "-c", path)
	want := path + `:4:5: unknown key "keyword" in subscriptions[0]; did you mean "keywords"?
` + path + `:5:15: subscriptions[0].interval: "10" has no unit; write 10s, 10m or 10h
` + path + `:6:13: subscriptions[0].sinks[0]: no sink is named "outt"; did you mean "out"?
`
	if r.code != 2 || r.stdout != want || !strings.Contains(r.stderr, "3 mistakes") {
		t.Errorf("got %+v, want 2 and %s", r, want)
	}
	r = vs(t, "run", "-c", path)
	if r.code != 2 || r.stderr != want || r.stdout != "" {
		t.Errorf("run: got %+v", r)
	}
	r = vs(t, "lint", "-c", path, "--format", "json")
	var first mistake
	if err := json.NewDecoder(strings.NewReader(r.stdout)).Decode(&first); err != nil {
		t.Fatal(err)
	}
	if first.File != path || first.Line != 4 || first.Column != 5 || strings.Count(r.stdout, "\n") != 3 || r.code != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestLintOK(t *testing.T) {
	path := file(t, "c.yaml", `
documents: [{url: https://example.com/feed, keep: true}]
sinks:
  out: {stdout: {format: json}}
  hook: {webhook: {url: "https://example.com/in", secret: "0123456789abcdef0123456789abcdef"}}
subscriptions:
  - {url: https://example.com/, keywords: [a], sinks: [out, hook]}
`)
	r := vs(t, "lint", "-c", path)
	if want := path + ": ok (1 subscription, 1 document, 2 sinks)\n"; r.code != 0 || r.stdout != want || r.stderr != "" {
		t.Errorf("got %+v", r)
	}
	if r := vs(t, "lint", "-c", path, "--format", "json"); r != (result{}) {
		t.Errorf("got %+v", r)
	}
}

func TestLintOfNoFile(t *testing.T) {
	r := vs(t, "lint", "-c", "none.yaml")
	if r.code != 2 || r.stdout != "none.yaml: the file none.yaml does not exist\n" || r.stderr != "vokter-stream: none.yaml cannot be read\n" {
		t.Errorf("got %+v", r)
	}
}

func TestLintWarnings(t *testing.T) {
	path := file(t, "c.yaml", `sinks: {out: {stdout: {}}}
subscriptions:
  - {url: https://example.com/a, keywords: [a], sinks: [out], language: en-GB, stem: true, filter_stopwords: true}
  - url: https://example.com/
    keywords: [a]
    sinks: [out]
    language: de
    stem: true
`)
	r := vs(t, "lint", "-c", path)
	want := path + `:8:11: warning: subscriptions[1].stem has no effect: there are no stems for the language "de", only for en` + "\n"
	if r.code != 0 || r.stdout != want+path+": ok (2 subscriptions, 0 documents, 1 sink)\n" {
		t.Errorf("got %+v, want %s", r, want)
	}
	r = vs(t, "lint", "-c", path, "--format", "json")
	var m mistake
	if err := json.Unmarshal([]byte(r.stdout), &m); err != nil || r.code != 0 || !m.Warning || m.Line != 8 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestLintWhatFails: an address that the flags permit as little as the file, an open loop of
// a template, and a file that is named as an argument.
func TestLintWhatFails(t *testing.T) {
	path := file(t, "c.yaml", `sinks: {hook: {webhook: {url: "http://127.0.0.1:1/?token=hush"}}}
documents: [{url: http://10.0.0.1/, keep: true}]
`)
	r := vs(t, "lint", "-c", path)
	if r.code != 0 || !strings.Contains(r.stdout, ":1:31: warning: sinks.hook.webhook.url: every delivery will fail") ||
		!strings.Contains(r.stdout, ":2:19: warning: documents[0].url: every check will fail") || strings.Contains(r.stdout, "hush") {
		t.Errorf("got %+v", r)
	}
	if r := vs(t, "lint", "-c", path, "--allow", "10.0.0.1,127.0.0.1"); r.code != 0 || strings.Contains(r.stdout, "warning") {
		t.Errorf("what is permitted: got %+v", r)
	}
	r = vs(t, "lint", "-c", file(t, "n.yaml", ""), "--format", "json")
	var m mistake
	if err := json.Unmarshal([]byte(r.stdout), &m); err != nil || r.code != 0 || !m.Warning || m.Line != 1 {
		t.Errorf("an empty file: got %+v, %v", r, err)
	}
	path = file(t, "t.yaml", `sinks: {chat: {slack: {webhook_url: "https://hooks.example/x", template: "{{.Titel}} {{range .Diffs}}{{.Text}}"}}}
`)
	expect(t, 2, "template: line 1: {{range .Diffs}} has no {{end}}", "lint", "-c", path)
	expect(t, 2, `lint takes no arguments, but got "m1.yaml"; write vokter-stream lint -c m1.yaml`, "lint", "m1.yaml")
	expect(t, 2, `write vokter-stream run -c m1.yaml`, "run", "m1.yaml")
	expect(t, 2, `list takes no arguments, but got "m1.yaml"`+"\n", "list", "m1.yaml")
}

// TestPluginMistakes checks that mistakes within the built-in sinks are placed.
func TestPluginMistakes(t *testing.T) {
	path := file(t, "c.yaml", `sinks:
  out: {stdout: {format: xml}}
  hook: {webhook: {urll: "https://example.com/in"}}
  bad: {webhook: {url: "ftp://example.com/in?token=hunter2"}}
  chat: {pager: {webhook_url: x}}
`)
	r := vs(t, "lint", "-c", path)
	for _, want := range []string{":2:26: ", `:3:20: unknown key "urll"`, ":4:24: ", `:5:10: unknown kind of sink "pager"`} {
		if !strings.Contains(r.stdout, path+want) {
			t.Errorf("%s is not in %s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "hunter2") {
		t.Errorf("the secret is shown: %s", r.stdout)
	}
}

func TestUnwritableDirectory(t *testing.T) {
	plain := file(t, "plain", "")
	r := vs(t, "watch", anyURL, "a", "--data", filepath.Join(plain, "d"), "--checks", "1")
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
	r = vs(t, "watch", anyURL, "a", "--data", locked, "--checks", "1")
	if r.code != 1 || !strings.Contains(r.stderr, "permission denied; give this user the right") {
		t.Errorf("got %+v", r)
	}
}
