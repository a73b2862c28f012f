package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

const threeMistakes = `sinks: {out: {stdout: {}}}
subscriptions:
  - url: https://example.com/
    keyword: [privacy]
    interval: 10
    sinks: [outt]
`

func TestLint(t *testing.T) {
	path := file(t, "c.yaml", threeMistakes)
	r := runCLI(t, "lint", "-c", path)
	want := path + `:4:5: unknown key "keyword" in subscriptions[0]; did you mean "keywords"?
` + path + `:5:15: subscriptions[0].interval: "10" has no unit; write 10s, 10m or 10h
` + path + `:6:13: subscriptions[0].sinks[0]: no sink is named "outt"; did you mean "out"?
`
	if r.code != 2 || r.stdout != want || !strings.Contains(r.stderr, "3 mistakes") {
		t.Errorf("got %+v, want 2 and %s", r, want)
	}
	r = runCLI(t, "run", "-c", path)
	if r.code != 2 || r.stderr != want || r.stdout != "" {
		t.Errorf("run: got %+v", r)
	}
	r = runCLI(t, "lint", "-c", path, "--format", "json")
	var first finding
	if err := json.NewDecoder(strings.NewReader(r.stdout)).Decode(&first); err != nil {
		t.Fatal(err)
	}
	if first.File != path || first.Line != 4 || first.Column != 5 || strings.Count(r.stdout, "\n") != 3 || r.code != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestLintOK(t *testing.T) {
	path := file(t, "c.yaml", `
data: d
documents: [{url: https://example.com/feed, keep: true}]
sinks:
  out: {stdout: {format: json}}
  hook: {webhook: {url: "https://example.com/in", secret: "0123456789abcdef0123456789abcdef"}}
subscriptions:
  - {url: https://example.com/, keywords: [a], sinks: [out, hook]}
`)
	r := runCLI(t, "lint", "-c", path)
	if want := path + ": ok (1 subscription, 1 document, 2 sinks)\nlanguage: of each page (what the page declares, else what is detected, else en): 1 subscription\n"; r.code != 0 || r.stdout != want || r.stderr != "" {
		t.Errorf("got %+v", r)
	}
	if ok := objects(t, runCLI(t, "lint", "-c", path, "--format", "json"))["ok"]; len(ok) != 1 || ok[0]["file"] != path || ok[0]["sinks"] != 2.0 || len(ok[0]["languages"].([]any)) != 1 {
		t.Errorf("got %v", ok)
	}
}

func TestLintOfNoFile(t *testing.T) {
	r := runCLI(t, "lint", "-c", "none.yaml")
	if r.code != 2 || r.stdout != "none.yaml: the file none.yaml does not exist\n" || r.stderr != "vokter-stream: none.yaml cannot be read\n" {
		t.Errorf("got %+v", r)
	}
}

func TestLintWarnings(t *testing.T) {
	path := file(t, "c.yaml", `data: d
sinks: {out: {stdout: {}}}
subscriptions:
  - {url: https://example.com/a, keywords: [a], sinks: [out], language: en-GB, stem: true, filter_stopwords: true}
  - url: https://example.com/
    keywords: [a]
    sinks: [out]
    language: ja
    stem: true
`)
	r := runCLI(t, "lint", "-c", path)
	want := path + `:9:11: warning: subscriptions[1].stem has no effect: there are no stems for the language "ja", only for `
	if lines := strings.Split(r.stdout, "\n"); r.code != 0 || len(lines) < 3 || !strings.HasPrefix(lines[0], want) || lines[1] != path+": ok (2 subscriptions, 0 documents, 1 sink)" {
		t.Errorf("got %+v, want %s", r, want)
	}
	found := objects(t, runCLI(t, "lint", "-c", path, "--format", "json"))
	if m := found["finding"]; len(m) != 1 || m[0]["warning"] != true || m[0]["line"] != 9.0 || len(found["ok"]) != 1 {
		t.Errorf("got %v", found)
	}
}

// TestLintOfWhatIsKeptInMemory: a file without data is warned of, unless a flag or Kafka keeps the state.
func TestLintOfWhatIsKeptInMemory(t *testing.T) {
	const text = "sinks: {out: {stdout: {}}}\nsubscriptions: [{url: https://example.com/, sinks: [out]}]\n"
	path := file(t, "c.yaml", text)
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"lint", "-c", path}, true},
		{[]string{"lint", "-c", path, "--data", t.TempDir()}, false},
		{[]string{"lint", "-c", file(t, "k.yaml", "transport: {kafka: {brokers: [\"127.0.0.1:9092\"]}}\n"+text)}, false},
	} {
		if r := runCLI(t, c.args...); r.code != 0 || strings.Contains(r.stdout, "kept in memory") != c.want {
			t.Errorf("%v: got %+v", c.args, r)
		}
	}
}

// TestLintWhatFails: an address that the flags permit as little as the file, an open loop of
// a template, and a file that is named as an argument.
func TestLintWhatFails(t *testing.T) {
	path := file(t, "c.yaml", `sinks: {hook: {webhook: {url: "http://127.0.0.1:1/?token=hush"}}}
documents: [{url: http://10.0.0.1/, keep: true}]
`)
	r := runCLI(t, "lint", "-c", path)
	if r.code != 0 || !strings.Contains(r.stdout, ":1:31: warning: sinks.hook.webhook.url: every delivery will fail") ||
		!strings.Contains(r.stdout, ":2:19: warning: documents[0].url: every check will fail") || strings.Contains(r.stdout, "hush") {
		t.Errorf("got %+v", r)
	}
	if r := runCLI(t, "lint", "-c", path, "--allow", "10.0.0.1,127.0.0.1"); r.code != 0 || strings.Contains(r.stdout, "warning") {
		t.Errorf("what is permitted: got %+v", r)
	}
	if m := objects(t, runCLI(t, "lint", "-c", file(t, "n.yaml", ""), "--format", "json"))["finding"]; len(m) != 1 || m[0]["warning"] != true || m[0]["line"] != 1.0 {
		t.Errorf("an empty file: got %v", m)
	}
	path = file(t, "t.yaml", `sinks: {chat: {slack: {webhook_url: "https://hooks.example/x", template: "{{.Titel}} {{range .Diffs}}{{.Text}}"}}}
`)
	expectExit(t, 2, "template: line 1: {{range .Diffs}} has no {{end}}", "lint", "-c", path)
	expectExit(t, 2, `lint takes no arguments, but got "m1.yaml"; write vokter-stream lint -c m1.yaml`, "lint", "m1.yaml")
	expectExit(t, 2, `write vokter-stream run -c m1.yaml`, "run", "m1.yaml")
	expectExit(t, 2, `list takes no arguments, but got "m1.yaml"`+"\n", "list", "m1.yaml")
}

// TestPluginMistakes checks that mistakes within the built-in sinks are placed.
func TestPluginMistakes(t *testing.T) {
	path := file(t, "c.yaml", `sinks:
  out: {stdout: {format: xml}}
  hook: {webhook: {urll: "https://example.com/in"}}
  bad: {webhook: {url: "ftp://example.com/in?token=hunter2"}}
  chat: {pager: {webhook_url: x}}
`)
	r := runCLI(t, "lint", "-c", path)
	for _, want := range []string{":2:26: ", `:3:20: unknown key "urll"`, ":4:24: ", `:5:10: unknown kind of sink "pager"`} {
		if !strings.Contains(r.stdout, path+want) {
			t.Errorf("%s is not in %s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "hunter2") {
		t.Errorf("the secret is shown: %s", r.stdout)
	}
}

// TestLintOfSlack: what cannot be is told with its place, without the secrets.
func TestLintOfSlack(t *testing.T) {
	path := file(t, "c.yaml", `sinks:
  a: {slack: {token: xapp-S3CRET, channel: C1}}
  b: {slack: {}}
  c: {slack: {webhook_url: "https://hooks.slack.com/S3CRET", thread: true}}
  d: {slack: {token: xoxb-1, chanel: C1}}
`)
	r := runCLI(t, "lint", "-c", path)
	for _, want := range []string{
		":2:22: sinks.a.slack.token: this is not the token of a bot", ":3:14: ", "either token and channel, or webhook_url",
		":4:", "thread: threads need a token", `"chanel"`, `"channel"`,
	} {
		if !strings.Contains(r.stderr+r.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	if r.code != 2 || strings.Contains(r.stderr+r.stdout, "S3CRET") {
		t.Errorf("got %+v", r)
	}
}
