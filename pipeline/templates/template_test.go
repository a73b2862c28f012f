package templates

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// testAttempt remembers what a sink said of it.
type testAttempt struct{ degraded []string }

func (*testAttempt) Document() string         { return "" }
func (*testAttempt) Note() string             { return "" }
func (*testAttempt) SetNote(string)           {}
func (a *testAttempt) Degraded(reason string) { a.degraded = append(a.degraded, reason) }

// compileTemplate returns a valid template as sinks have it.
func compileTemplate(t testing.TB, source string) render.Template {
	t.Helper()
	compiled, err := render.CompileTemplate("template", New(source))
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return compiled
}

// renderTemplate renders a valid template, and returns what the attempt was told.
func renderTemplate(t *testing.T, source string, n pipeline.Notification, escape func(string) string) (string, bool, []string) {
	t.Helper()
	text := compileTemplate(t, source)
	a := new(testAttempt)
	s, ok := text.RenderFor(pipeline.WithAttempt(t.Context(), a), n, escape)
	return s, ok, a.degraded
}

func TestRender(t *testing.T) {
	n := render.Samples()[0].Notification
	n.Title = `Terms & <Conditions>`
	for source, want := range map[string]string{
		`{{.status}} {{.type}} {{.client}} {{.version}} {{.language}} {{.host}} {{.url}}`: "ok notification default 7 en example.com https://example.com/terms",
		`{{.headline}}`: "added: arbitration; removed: refund",
		`{{range .diffs}}{{if eq .event "added"}}+{{else}}-{{end}} {{.keyword}}: {{.text}}` + "\n{{end}}": "+ arbitration: binding arbitration\n- refund: a full refund",
		`{{range $i, $d := .diffs}}{{if $i}}, {{end}}{{$d.keyword | upper}}{{end}}`:                       "ARBITRATION, REFUND",
		`{{join ", " .keywords}} ({{len .diffs}})`:                                                        "arbitration, refund (2)",
		`{{.title}} {{.title | html}} {{mrkdwn .title}}`:                                                  "Terms & <Conditions> Terms &amp; &lt;Conditions&gt; Terms &amp; &lt;Conditions&gt;",
		`{{markdown "@all *a* [b](http://c)"}}`:                                                           "@\u200ball \\*a\\* \\[b\\]\\(http://c\\)",
		`{{date "2 Jan 2006 15:04" .time}} {{.time | date "15:04 MST" "UTC"}}`:                            "2 Jan 2026 03:04 03:04 UTC",
		`{{default "none" .reason}} {{default "none" .status}}`:                                           "none ok",
		`{{replace "of" "OF" "one of two"}} {{trim "  x "}} {{lower "ABC"}}`:                              "one OF two x abc",
		`{{trunc 5 "Überraschung"}}`:                                                                      "Über…",
		`{{quote "a\"b"}} {{json "<\n>"}}`:                                                                `"a\"b" "<\n>"`,
		`{{print "a" 1 true}} {{printf "%s-%d-%q-%v%%" "a" 2 "b" true}}`:                                  `a1 true a-2-"b"-true%`,
		`{{with .health}}{{.event}}{{else}}none{{end}}`:                                                   "none",
		`{{define "d"}}[{{.}}]{{end}}{{range .keywords}}{{template "d" .}}{{end}}`:                        "[arbitration][refund]",
		`{{(index .diffs 1).text}}{{range .items}}x{{end}}{{if not .truncated}}.{{end}}`:                  "a full refund.",
		`{{if and (ge (len .diffs) 2) (or .reason .title)}}yes{{end}}`:                                    "yes",
		"\n\n a \n": "a",
	} {
		got, ok, degraded := renderTemplate(t, source, n, nil)
		if !ok || got != want || len(degraded) > 0 {
			t.Errorf("%s: got %q, %v, %q, want %q", source, got, ok, degraded, want)
		}
	}
}

func TestItemsOfDigest(t *testing.T) {
	n := render.Samples()[2].Notification
	n.Items[1].Diffs = 5 // more than there are
	got, _, _ := renderTemplate(t, `{{range .items}}{{.version}}:{{range .diffs}} {{.keyword}}{{end}};{{end}}`, n, nil)
	if want := "6: arbitration;7: refund;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValuesOfItems(t *testing.T) {
	n := pipeline.Notification{Items: []pipeline.Item{
		{Value: &pipeline.ValueChange{Old: "120.00", New: "95.00"}}, {Value: &pipeline.ValueChange{Old: "101.00", New: "99.00"}},
	}}
	got, _, _ := renderTemplate(t, `{{range .items}}{{.value.old}} to {{.value.new}}; {{end}}`, n, nil)
	if want := "120.00 to 95.00; 101.00 to 99.00;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The password in the address of a page is not told.
func TestAddressesHoldNoPassword(t *testing.T) {
	const secret = "https://user:hunter2@example.com/a"
	for _, raw := range []string{secret, "ftp://user:hunter2@example.com/a"} {
		n := render.Samples()[0].Notification
		n.URL, n.Health = raw, &pipeline.Health{URL: raw, URLs: []string{raw}}
		got, ok, _ := renderTemplate(t, `{{.url}} {{.host}} {{.health.url}} {{join " " .health.urls}}`, n, nil)
		if !ok || strings.Contains(got, "hunter2") || strings.Count(got, "example.com/a") != 3 {
			t.Errorf("got %q", got)
		}
	}
}

// One template without conditions says what there is to say of every sort.
func TestHealthEventIsAboutAPage(t *testing.T) {
	got, _, _ := renderTemplate(t, `{{.headline}}: {{.url}}, {{.reason}}`, render.Samples()[3].Notification, nil)
	if want := "failing: https://example.com/terms, checks of this page fail "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q...", got, want)
	}
}

// Each value that is printed is escaped once, whoever does it.
func TestEscapes(t *testing.T) {
	n := render.Samples()[0].Notification
	n.Title, n.Client = "<a&b>", `"&"`
	for source, want := range map[string]string{
		`<b> {{.title}}`: "<b> &lt;a&amp;b&gt;",
		`{{html .client}} {{.client | markdown}} {{.client}}`: `"&amp;" "&amp;" "&amp;"`,
		`{{mrkdwn .title}}`:                                                "&lt;a&amp;b&gt;",
		`{{.title | upper | mrkdwn}}`:                                      "&lt;A&amp;B&gt;",
		`{{.title | trunc 2}}`:                                             "&lt;…",
		`{{$t := .title}}{{$t}}`:                                           "&lt;a&amp;b&gt;",
		`{{if .title}}{{.title}}{{end}}`:                                   "&lt;a&amp;b&gt;",
		`{{with .title}}{{.}}{{end}}`:                                      "&lt;a&amp;b&gt;",
		`{{with .reason}}{{else}}{{$.title}}{{end}}`:                       "&lt;a&amp;b&gt;",
		`{{if .reason}}{{else}}{{.title}}{{end}}`:                          "&lt;a&amp;b&gt;",
		`{{range .items}}{{else}}{{.title}}{{end}}`:                        "&lt;a&amp;b&gt;",
		`{{range $i, $d := .diffs}}{{if not $i}}{{$.title}}{{end}}{{end}}`: "&lt;a&amp;b&gt;",
		`{{define "d"}}{{.}}{{end}}{{template "d" .title}}`:                "&lt;a&amp;b&gt;",
		`{{len .diffs}}{{eq 1 1}}`:                                         "2true",
	} {
		if got, ok, _ := renderTemplate(t, source, n, render.Mrkdwn); !ok || got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

// One Template serves many deliveries at once, each with the escape function of its sink.
func TestManyAtOnce(t *testing.T) {
	text, n := compileTemplate(t, "{{.title}}{{range .diffs}}{{html .keyword}}{{end}}"), render.Samples()[0].Notification
	n.Title = "<&>"
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			escape, want := render.Mrkdwn, "&lt;&amp;&gt;arbitrationrefund"
			if i%2 == 0 {
				escape, want = render.Markdown, `\<&\>arbitrationrefund`
			}
			for range 50 {
				if got, ok := text.RenderFor(t.Context(), n, escape); !ok || got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// The text of a page is data: it is not parsed, and what steers a screen is dropped.
func TestPageTextIsInert(t *testing.T) {
	n := render.Samples()[0].Notification
	n.Title = "{{.url}}\u202e{{range 9}}\x00\r\n%s \xff"
	n.Diffs[0].Text = "{{end}}\u202e\x1b[1m\n%s"
	got, ok, _ := renderTemplate(t, `{{.title}}|{{(index .diffs 0).text}}`, n, nil)
	if want := "{{.url}}{{range 9}} %s \ufffd|{{end}}[1m %s"; !ok || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A template that fails says so, and leaves the notification to the sink.
func TestFailureIsDegraded(t *testing.T) {
	n := render.Samples()[4].Notification
	n.Language = strings.Repeat("x", maxText)
	for source, want := range map[string]string{
		`{{.titel}}`:                         `line 1: there is no field "titel"; did you mean "title"?`,
		`{{range .diffs}}{{.client}}{{end}}`: `line 1: there is no field .client here; within range and with write $.client`,
		`{{.keyword}}`:                       `line 1: there is no field .keyword here; it belongs to .diffs, .items or .health`,
		`{{range .diffs}}{{.keywrd}}{{end}}`: `line 1: there is no field "keywrd"; did you mean "keyword"?`,
		`{{.title.x}}`:                       "line 1: at <.title.x>: can't evaluate field x",
		`{{(index .diffs 1000).text}}`:       "index out of range",
		`{{date "15:04" .title}}`:            "not a time such as .time",
		`{{date "15:04" "../x" .time}}`:      "the time zone is not known",
		`{{date "15:04"}}`:                   "it takes a layout",
		`{{upper 1}}`:                        "expected string",
		`{{trunc 0 .title}}`:                 "must be at least 1",
		`{{.diffs}}`:                         "only texts, numbers",
		`{{.health}}`:                        "only texts, numbers",
		`{{index .health "x"}}`:              "only texts, numbers",
		`{{print .diffs}}`:                   "only texts, numbers",
		`{{if .reason}}x{{end}}`:             "it says nothing",
		` `:                                  "it says nothing",
		`{{range .title}}{{end}}`:            "range can't iterate over a string",
		// Bounds: of the output, of the steps, of each value.
		`{{range .diffs}}{{range $.diffs}}{{.text}}{{.text}}{{end}}{{end}}`: "it says more than 64 KB",
		`{{$x := .language}}{{range .diffs}}{{$x = print $x $x}}{{end}}`:    "the result has more than 64 KB",
		`{{replace "x" .language .language}}`:                               "the result has more than 64 KB",
		`{{replace "" .language .language}}`:                                "the result has more than 64 KB",
		`{{$x := .language}}{{printf "%s%s%s%s%s" $x $x $x $x $x}}`:         "the result has more than 64 KB",
	} {
		got, ok, degraded := renderTemplate(t, source, n, nil)
		if ok || got != "" || len(degraded) != 1 || !strings.Contains(degraded[0], "the template failed: ") || !strings.Contains(degraded[0], want) {
			t.Errorf("%s: got %q, %v and %q, want one with %q", source, got, ok, degraded, want)
		}
		for _, d := range degraded {
			if strings.Contains(d, "<!channel>") || strings.ContainsAny(d, "\n") {
				t.Errorf("%s: page text is in %q", source, d)
			}
		}
	}
}

// A loop that writes nothing is ended all the same, by its steps and by the context.
func TestLoopsMeetTheWriter(t *testing.T) {
	n := render.Samples()[4].Notification
	for range 3 {
		n.Diffs = append(n.Diffs, n.Diffs...)
	}
	const silent = `x{{range .diffs}}{{range $.diffs}}{{end}}{{end}}`
	if _, ok, degraded := renderTemplate(t, silent, n, nil); ok || len(degraded) != 1 || !strings.Contains(degraded[0], "steps") {
		t.Errorf("got %v and %q, want an end after some steps", ok, degraded)
	}
	a := new(testAttempt)
	ctx, cancel := context.WithDeadline(pipeline.WithAttempt(t.Context(), a), time.Now().Add(-time.Second))
	defer cancel()
	if _, ok := compileTemplate(t, silent).Render(ctx, render.Samples()[0].Notification); ok || len(a.degraded) != 1 || !strings.Contains(a.degraded[0], "took too long") {
		t.Errorf("got %v and %q, want an end by the deadline", ok, a.degraded)
	}
}

// A program that breaks in a template breaks no further.
func TestPanicIsAFailure(t *testing.T) {
	a := new(testAttempt)
	broken, err := render.CompileTemplate("template", &program{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := broken.Render(pipeline.WithAttempt(t.Context(), a), render.Samples()[0].Notification); ok || len(a.degraded) != 1 {
		t.Errorf("got %v and %q", ok, a.degraded)
	}
	_, ok, degraded := renderTemplate(t, "{{.title}}", render.Samples()[0].Notification, func(string) string { panic("no") })
	if ok || len(degraded) != 1 {
		t.Errorf("a function that panics: got %v and %q", ok, degraded)
	}
}

// No function makes more of its arguments than it may, or takes the memory for it.
func TestFunctionsAreBounded(t *testing.T) {
	large := strings.Repeat("<", maxValue)
	for name, err := range map[string]error{
		"replace":  secondOf(replace("<", large, large)),
		"join":     secondOf(join(large, []string{"a", "b", "c"})),
		"print":    secondOf(format(fmt.Sprint, []any{large, "a"})),
		"printf":   secondOf(printf("%s", large+"a")),
		"quote":    secondOf(functions["quote"].(func(string) (string, error))(large)),
		"json":     secondOf(render.JSON(strings.Repeat("<", 1<<20))),
		"mrkdwn":   secondOf(functions["mrkdwn"].(func(string) (string, error))(large)),
		"html":     secondOf(functions["html"].(func(string) (string, error))(large)),
		"markdown": secondOf(functions["markdown"].(func(string) (string, error))(large)),
	} {
		if !errors.Is(err, errLarge) && (name != "json" || err == nil || err.Error() != "the result has more than 1 MB") {
			t.Errorf("%s: got %v, want %v", name, err, errLarge)
		}
	}
	before := allocatedBytes()
	for range 9 {
		_, _ = replace("<", large, large)
		_, _ = join(large, make([]string, 1<<12))
	}
	if got := allocatedBytes() - before; got > 16<<20 {
		t.Errorf("%d bytes were taken for what is refused", got)
	}
}

func secondOf[A, B any](_ A, b B) B { return b }

func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// What is broken off is as if it had not begun.
func TestCanceledIsNotDegraded(t *testing.T) {
	a := new(testAttempt)
	ctx, cancel := context.WithCancel(pipeline.WithAttempt(t.Context(), a))
	cancel()
	if _, ok := compileTemplate(t, "x").Render(ctx, render.Samples()[0].Notification); ok || len(a.degraded) > 0 {
		t.Errorf("got %v and %q, want neither", ok, a.degraded)
	}
}

func TestZero(t *testing.T) {
	a := new(testAttempt)
	for _, z := range []render.Template{{}, compileTemplate(t, "")} {
		s, ok := z.Render(pipeline.WithAttempt(t.Context(), a), render.Samples()[0].Notification)
		if s != "" || ok || len(a.degraded) > 0 || !z.IsZero() {
			t.Errorf("the zero Template is not none: %q, %v, %q", s, ok, a.degraded)
		}
	}
	if u := compileTemplate(t, "{{.title}}"); u.IsZero() {
		t.Error("a template is none")
	}
	for _, no := range []registry.Template{New("{{"), alien{}} {
		if u, err := render.CompileTemplate("template", no); err == nil || !strings.HasPrefix(err.Error(), "template: ") || !u.IsZero() {
			t.Errorf("got %v, want an error of the field", err)
		}
	}
}

// alien is a registry.Template that this package did not make.
type alien struct{}

func (alien) Validate() error { return nil }

// TryTemplate tells whom a template would fail.
func TestTry(t *testing.T) {
	for source, want := range map[string]string{
		`{{.headline}} {{.title}} {{.url}} {{.reason}}`: "",
		`{{.titel}}`:                                                                               "fails for an ordinary notification: line 1: ",
		`{{(index .diffs 0).text}}`:                                                                "fails for a page that cannot be read, which has no diffs: ",
		`{{if eq .type "digest"}}{{.x}}{{end}}a`:                                                   "fails for a digest: ",
		`{{if eq .type "health"}}{{.x}}{{end}}a`:                                                   "fails for a health event, ",
		`{{if eq .type "test"}}{{.x}}{{end}}a`:                                                     "fails for the message of a test: ",
		`{{if eq .type "health"}}{{.health.since}}{{else}}{{.client}}{{end}}`:                      "",
		`{{$x := .title}}{{range .diffs}}{{$x = print $x $x}}{{end}}a`:                             "fails for a page that tries to break it: ",
		`{{range .items}}{{range .diffs}}{{else}}{{range $.diffs}}{{.text}}{{end}}{{end}}{{end}}a`: "",
		`{{range 5}}{{end}}`:                                                                       "line 1: range goes",
	} {
		err := render.TryTemplate(New(source))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

func TestFunctionsOfList(t *testing.T) {
	if got := len(functionNames()); got > 26 {
		t.Errorf("%d functions, want about 20: %v", got, functionNames())
	}
}

func TestUnclosed(t *testing.T) {
	for source, want := range map[string]string{
		"{{range .Diffs}}{{.Text}}":                                "line 1: {{range .Diffs}} has no {{end}}; write one where it ends",
		"a\n{{- range .Diffs -}}\n{{if .Text}}x{{else}}y{{end}}\n": "line 2: {{- range .Diffs -}} has no {{end}}; write one where it ends",
		"{{range .Diffs}}{{end}}\n\n{{ if .Title }}":               "line 3: {{ if .Title }} has no {{end}}; write one where it ends",
		"{{range .Diffs}}\n{{with .Text}}{{.}}":                    "line 2: {{with .Text}} has no {{end}}; write one where it ends",
		`{{/* {{range}} */}}{{if eq .Title "}}{{end}}"}}x`:         `line 1: {{if eq .Title "}}{{end}}"}} has no {{end}}; write one where it ends`,
		"{{range .Diffs}}{{.Nme}}{{with}":                          "line 1: bad character U+007D '}'",
	} {
		if err := New(source).Validate(); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", source, err, want)
		}
	}
	for _, source := range []string{"", "{{end}}", "{{.Title}}", "{{range .Diffs}}{{end}}", "{{range .Diffs}}{{", "{{/* a"} {
		if got := findUnclosed(source); got != "" {
			t.Errorf("%q: got %s", source, got)
		}
	}
}

// FuzzUnclosed: nothing is missed in what is valid.
func FuzzUnclosed(f *testing.F) {
	for _, s := range []string{"{{range .Diffs}}", "{{/* */}}{{end}}", "{{`}}`}}", "{{- with \"}}\" -}}{{if", "{{'", "{{-}}", "{{}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if _, err := compile(source); err == nil && findUnclosed(source) != "" {
			t.Errorf("%q is valid, but: %s", source, findUnclosed(source))
		}
	})
}

const benchmarkTemplate = `*{{.title}}* {{.url}}
{{range .diffs}}{{if eq .event "added"}}+{{else}}-{{end}} *{{.keyword}}*: {{.snippet | trunc 200}}
{{end}}{{.reason}}`

// The same with text/template as it comes, on data that is there already.
func BenchmarkBare(b *testing.B) {
	t, d := template.Must(template.New("").Funcs(functions).Parse(benchmarkTemplate)), templateData(render.Samples()[0].Notification)
	b.ReportAllocs()
	for b.Loop() {
		var s strings.Builder
		if err := t.Execute(&s, d); err != nil {
			b.Fatal(err)
		}
	}
}
