package render

import (
	"strings"
	"testing"
	"text/template"
)

const benchmarked = `*{{.title}}* {{.url}}
{{range .diffs}}{{if eq .event "added"}}+{{else}}-{{end}} *{{.keyword}}*: {{.snippet | trunc 200}}
{{end}}{{.reason}}`

// One notification of two differences, with its data.
func BenchmarkRender(b *testing.B) {
	t, n := NewTemplate(benchmarked), samples()[0].notification
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := t.RenderFor(b.Context(), n, Mrkdwn); !ok {
			b.Fatal("it failed")
		}
	}
}

// The same with text/template as it comes, on data that is there already.
func BenchmarkBare(b *testing.B) {
	t, d := template.Must(template.New("").Funcs(functions).Parse(benchmarked)), data(samples()[0].notification)
	b.ReportAllocs()
	for b.Loop() {
		var s strings.Builder
		if err := t.Execute(&s, d); err != nil {
			b.Fatal(err)
		}
	}
}

// The layout alone that a template takes the place of.
func BenchmarkData(b *testing.B) {
	n := samples()[0].notification
	b.ReportAllocs()
	for b.Loop() {
		data(n)
	}
}
