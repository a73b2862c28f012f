package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

// subscriptionsIn returns the subscriptions of a configuration.
func subscriptionsIn(t *testing.T, text string) []pipeline.Subscription {
	t.Helper()
	c, err := config.Parse("c.yaml", []byte(text), config.Options{Registry: new(app).plugins()})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return c.Router.Subscriptions
}

// browserPagesIn returns how the pages of a configuration are fetched, without those fetched with one request.
func browserPagesIn(t *testing.T, text string) map[string]browser.Page {
	t.Helper()
	c, err := config.Parse("c.yaml", []byte(text), config.Options{Registry: new(app).plugins()})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return c.Browser.Config().Pages
}

// TestImportOfAConfiguration: what export writes is no list of another program.
func TestImportOfAConfiguration(t *testing.T) {
	own := file(t, "own.yaml", "# Written by vokter-stream export.\nsinks: {a: {stdout: {}}}\nsubscriptions:\n  - url: https://example.com/\n    sinks: [a]\n")
	expectExit(t, 1, "it is a configuration of vokter-stream already", "import", own)
	expectExit(t, 0, `{"notice":"1 subscription imported from `, "import", file(t, "list.txt", "https://example.com/\n"), "--format", "json")
}

// TestImportedFilesPassLint imports a file of each format.
func TestImportedFilesPassLint(t *testing.T) {
	for name, want := range map[string]struct {
		subscriptions, lost int
		says                string
	}{
		"urls.yaml":        {10, 17, "https://example.com/twice: it is left out: it is the same as https://example.com/twice"},
		"url-watches.json": {4, 14, "An item: trigger_text: keywords are words, not regular expressions"},
		"feeds.opml":       {6, 1, `Broken: it is left out: "feed:nowhere"`},
		"urls.txt":         {2, 2, "line 6: it is left out: it is the same as line 2"},
	} {
		r := runCLI(t, "import", filepath.Join("..", "migrate", "testdata", name))
		if r.code != 0 || !strings.Contains(r.stderr, want.says) {
			t.Errorf("%s: got %+v", name, r)
			continue
		}
		if lint := runCLI(t, "lint", "-c", file(t, "c.yaml", r.stdout)); lint.code != 0 || strings.Count(lint.stderr+lint.stdout, "warning: ") > strings.Count(lint.stderr+lint.stdout, "warning: the checks of pages with fetch: browser") {
			t.Errorf("%s: lint says %+v about\n%s", name, lint, r.stdout)
		}
		if got := subscriptionsIn(t, r.stdout); len(got) != want.subscriptions {
			t.Errorf("%s: %d subscriptions, want %d", name, len(got), want.subscriptions)
		}
		summary := fmt.Sprintf("; %d lines above say what needs a look\n", want.lost)
		if want.lost == 1 {
			summary = "; 1 line above says what needs a look\n"
		}
		if !strings.HasSuffix(r.stderr, summary) {
			t.Errorf("%s: got %s", name, r.stderr)
		}
	}
}

// TestImportKeepsValues imports values that YAML, variables and terminals could change.
func TestImportKeepsValues(t *testing.T) {
	r := runCLI(t, "import", file(t, "urls.yaml", `
name: "ends here\n  - url: https://example.com/injected\u001b[31m"
url: "https://example.com/${HOME}?a=$${B}&c=: #d"
filter:
- css: "a[title=\"x: y # z\"]"
- delete_lines_containing: "- ${A} 'b' \"c\" \\ : {d}"
headers: {X-A: "$${HOME} ${HOME} $", "X B": "x", X-C: "line\nbreak", X-D: "yes"}
cookies: {a: "1; b=2", c: "ok"}
`))
	if r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	c, err := config.Parse("c.yaml", []byte(r.stdout), config.Options{Registry: new(app).plugins()})
	if err != nil {
		t.Fatalf("%v in\n%s", err, r.stdout)
	}
	all := c.Router.Subscriptions
	if len(all) != 1 || all[0].URL != "https://example.com/${HOME}?a=$${B}&c=: #d" || all[0].Select[0].CSS != `a[title="x: y # z"]` ||
		!reflect.DeepEqual(all[0].Ignore, []string{`(?m)^.*(?:- \$\{A\} 'b' "c" \\ : \{d\}).*$`}) {
		t.Errorf("got %+v from\n%s", all, r.stdout)
	}
	a := c.Router.Access["import-1"]
	if len(a.Headers) != 2 || a.Headers["X-A"].Reveal() != "$${HOME} ${HOME} $" || a.Headers["X-D"].Reveal() != "yes" || len(a.Cookies) != 1 || a.Cookies["c"].Reveal() != "ok" {
		t.Errorf("got access %+v from\n%s", a, r.stdout)
	}
	if strings.ContainsRune(r.stdout+r.stderr, '\x1b') {
		t.Errorf("the output steers the terminal: %q", r.stdout+r.stderr)
	}
	for _, want := range []string{"headers.X B: ", "headers.X-C: ", "cookies.a: "} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("nothing is said about %s in %s", want, r.stderr)
		}
	}
}

func TestImportMistakes(t *testing.T) {
	expectExit(t, exitUsage, "name one file", "import")
	expectExit(t, exitUsage, "does not exist", "import", "missing.yaml")
	expectExit(t, exitUsage, "is a directory", "import", t.TempDir())
	expectExit(t, exitUsage, `did you mean "opml"?`, "import", "--from", "opm", "x")
	expectExit(t, exitFailed, "cannot be imported: the file is not YAML", "import", file(t, "urls.yaml", "url: ["))
	expectExit(t, exitFailed, "nothing in ", "import", file(t, "urls.txt", "nonsense\n"))
}

// TestExport writes the subscriptions of a data directory, and compares what a run of the result has.
func TestExport(t *testing.T) {
	p := newPage(t, "<p>Zeus</p>")
	data := filepath.Join(t.TempDir(), "d")
	watched := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(watched, []byte("Zeus\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf(`
data: %s
allow: {files: [%q]}
fetch: {per_host: {rate: 1000/s}}
sinks: {hook: {webhook: {url: "https://example.com/in"}}, out: {stdout: {}}}
subscriptions:
  - {url: %q, keywords: ["a: ${x:-b} # c", zeus], sinks: [hook, out], interval: 5m, stem: true, events: [added], digest: 1h}
  - {url: %q, client: ops, keywords: [zeus], sinks: [out], select: [p, {from: h1, to: h2}], ignore: ['\d+'], follow: {depth: 2, exclude: ['/x']}, min_change: 2, quiet: '22:00-07:00 Europe/Berlin', interval: '5m to 1h'}
  - {url: %q, sinks: [out], title: 'A: "file"', interval: '0 9 * * * Europe/Berlin', items: true, replaced: true, confirm: 2, flip_flop: 3}
  - {url: "http://127.0.0.1:1/paused", sinks: [out], paused: true, fetch: browser, steps: [{click: "#ok"}, {fill: {select: q, value: hush}}]}
  - {sitemap: %q, keywords: [zeus], sinks: [out]}
`, data, watched, p.URL, p.URL, "file://"+watched, p.URL+"/sitemap.xml")
	config := file(t, "c.yaml", first)
	p.set(http.StatusOK, "<p>Zeus</p>")
	if r := runCLI(t, "run", "-c", config, "--allow", loopback, "--checks", "1", "--every", "0s", "--log-level", "error"); r.code == exitUsage {
		t.Fatalf("got %+v", r)
	}
	if r := runCLI(t, "export", "--data", data); r.code != 0 || strings.Contains(r.stdout, "steps:") || !strings.Contains(r.stderr, "give -c FILE to write fetch and steps") {
		t.Fatalf("got %+v", r)
	}
	r := runCLI(t, "export", "-c", config)
	if r.code != 0 || !strings.Contains(r.stderr, "may be secrets") {
		t.Fatalf("got %+v", r)
	}
	if got, want := browserPagesIn(t, r.stdout), browserPagesIn(t, first); len(want) != 1 || !reflect.DeepEqual(got, want) {
		t.Errorf("got the pages %+v, want %+v", got, want)
	}
	if lint := runCLI(t, "lint", "-c", file(t, "c.yaml", r.stdout)); lint.code != 0 {
		t.Errorf("lint says %+v about\n%s", lint, r.stdout)
	}
	by := func(all []pipeline.Subscription) map[string]pipeline.Subscription {
		m := make(map[string]pipeline.Subscription)
		for _, s := range all {
			s = s.WithDefaults()
			if s.Follow != nil {
				f := s.Follow.WithDefaults()
				s.Follow = &f
			}
			m[s.URL+" "+s.Client] = s
		}
		return m
	}
	got, want := by(subscriptionsIn(t, r.stdout)), by(subscriptionsIn(t, first))
	for k := range want {
		if !reflect.DeepEqual(got[k], want[k]) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", k, got[k], want[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d subscriptions, want %d:\n%s", len(got), len(want), r.stdout)
	}
}
