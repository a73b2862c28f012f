package templates

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// What could run for ever, grow without end or reach out is refused when it is read.
func TestAttacksAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		`{{range 1000000000000}}{{end}}`:                                             "range goes over a field",
		`{{$n := len .url}}{{range $n}}{{end}}`:                                      "range goes over a field",
		`{{with 1000000000000}}{{range .}}{{end}}{{end}}`:                            "range goes over a field",
		`{{range len .url}}{{end}}`:                                                  "range goes over a field",
		`{{range (index .diffs 0)}}{{end}}`:                                          "range goes over a field",
		`{{printf "%1000000d" 1}}`:                                                   "printf needs a format",
		`{{printf "%.1000000f" 1.0}}`:                                                "printf needs a format",
		`{{printf "%*d" 1000000 1}}`:                                                 "printf needs a format",
		`{{printf .title}}`:                                                          "printf needs a format",
		`{{.title | printf}}`:                                                        "printf needs a format",
		`{{print (print (printf "%1000000d" 1))}}`:                                   "printf needs a format",
		`{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`:                  `"a" calls itself`,
		`{{define "a"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}`: "calls itself",
		`{{template "template" .}}`:                                                  "calls itself",
		`{{template "b"}}`:                                                           `no template is defined as "b"`,
		`{{block "a" .}}{{template "a" .}}{{end}}`:                                   "calls itself",
		`{{range .diffs}}{{range $.diffs}}{{range $.diffs}}{{end}}{{end}}{{end}}`:    "more than 2 loops",
		`{{define "a"}}{{range .diffs}}{{range $.diffs}}{{end}}{{end}}{{end}}{{range .items}}{{template "a" .}}{{end}}`: "more than 2 loops",
		`{{range .diffs}}{{else}}{{range .diffs}}{{range .diffs}}{{range .diffs}}{{end}}{{end}}{{end}}{{end}}`:          "more than 2 loops",
		doublingTemplates(20):                         "does more than",
		`{{env "HOME"}}`:                              `no function "env"`,
		`{{repeat 200000000 "x"}}`:                    `no function "repeat"`,
		`{{until 20000000}}`:                          `no function "until"`,
		`{{genPrivateKey "rsa"}}`:                     `no function "genPrivateKey"`,
		`{{uper .title}}`:                             `no function "uper"; did you mean "upper"?`,
		`{{call .title}}`:                             `no function "call"`,
		`{{js .title}}`:                               `no function "js"`,
		`{{println .title}}`:                          `no function "println"`,
		`{{slice .title 1}}`:                          `no function "slice"`,
		`{{_escape .title}}`:                          `no function "_escape"`,
		`{{if eq (js .title) ""}}{{end}}`:             `no function "js"`,
		`{{(js .title).x}}`:                           `no function "js"`,
		`{{with $x := js .title}}{{end}}`:             `no function "js"`,
		`{{range .diffs}}{{else}}{{js .x}}{{end}}`:    `no function "js"`,
		`{{template "a" js .x}}{{define "a"}}{{end}}`: `no function "js"`,
		`{{define "unused"}}{{js .x}}{{end}}`:         `no function "js"`,
		"a\nb {{.x":                                   "line 2: unclosed action",
		strings.Repeat("x", maxSource+1):              "at most 16384",
	} {
		err := New(source).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want an error with %q", source, err, want)
		}
	}
}

// doublingTemplates calls templates that call two each, n deep.
func doublingTemplates(n int) string {
	var b strings.Builder
	for i := range n {
		c, d := string(rune('a'+i)), string(rune('b'+i))
		b.WriteString(`{{define "` + c + `"}}{{template "` + d + `"}}{{template "` + d + `"}}{{end}}`)
	}
	b.WriteString(`{{define "` + string(rune('a'+n)) + `"}}x{{end}}{{template "a"}}`)
	return b.String()
}

// A template sees texts alone, in maps and lists: there is no method to call, and no number
// to count to.
func TestDataIsText(t *testing.T) {
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			walk(path, v.Elem())
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(path+"."+k.String(), v.MapIndex(k))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path+"[]", v.Index(i))
			}
		case reflect.String:
		default:
			t.Errorf("%s is a %s", path, v.Kind())
		}
		if v.NumMethod() > 0 && v.Kind() != reflect.Interface {
			t.Errorf("%s is a %s, which has methods", path, v.Type())
		}
	}
	for _, s := range render.Samples() {
		if s.Notification.Health != nil {
			s.Notification.Health.Receiver, s.Notification.Health.URLs = &pipeline.Receiver{Sink: "a"}, []string{"b"}
		}
		walk("", reflect.ValueOf(templateData(s.Notification)))
	}
}

// However many steps a template that passed takes, it comes to an end, and what it makes
// is bounded.
func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		`{{range $i, $d := .diffs}}{{if $i}}, {{end}}{{$d.keyword | upper | trunc 9}}{{else}}{{.reason}}{{end}}`,
		`{{define "a"}}{{range .diffs}}{{.text}}{{break}}{{end}}{{end}}{{range .items}}{{template "a" .}}{{end}}`,
		`{{with $x := .health}}{{$x.event}}{{else with .title}}{{.}}{{end}}{{$y := 1}}{{$y = len .diffs}}{{$y}}`,
		`{{block "b" .}}{{printf "%s %q" .title (join "," .keywords)}}{{end}}{{date "15:04" "UTC" .time}}`,
		`{{$x := .title}}{{range .diffs}}{{range $.diffs}}{{$x = print $x $x}}{{end}}{{end}}`,
		`{{(index .diffs 0).text | replace "a" "b" | mrkdwn}}{{/* no */}}{{- .url -}} x`,
	} {
		f.Add(source)
	}
	n := render.Samples()[4].Notification
	f.Fuzz(func(t *testing.T, source string) {
		text, err := render.CompileTemplate("template", New(source))
		if err != nil {
			return
		}
		s, _ := text.RenderFor(t.Context(), n, render.Markdown)
		if len(s) > maxOutput {
			t.Errorf("it made %d bytes", len(s))
		}
	})
}

// What a template may say is listed for those who write one.
func TestEverythingIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/sinks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(b), "## Templates")
	all := render.Samples()
	names := make(map[string]bool)
	for k := range templateData(all[3].Notification) {
		names[k] = true
	}
	for k := range healthData(all[3].Notification.Health) {
		names[k] = true
	}
	diffs := diffData(all[2].Notification.Diffs)
	for k := range diffs[0] {
		names[k] = true
	}
	for k := range itemData(all[2].Notification.Items, diffs)[0] {
		names[k] = true
	}
	for _, s := range all {
		if !strings.Contains(doc, "`"+s.Notification.Type+"`") {
			t.Errorf("the type %s is not documented", s.Notification.Type)
		}
	}
	for name := range names {
		if !strings.Contains(doc, "`."+name+"`") {
			t.Errorf(".%s is not documented", name)
		}
	}
	for _, f := range functionNames() {
		comparison := strings.Contains(" eq ne lt le gt ge ", " "+f+" ")
		if !comparison && !strings.Contains(doc, "`"+f+"`") && !strings.Contains(doc, "`"+f+" ") {
			t.Errorf("the function %s is not documented", f)
		}
	}
}
