package render

import "testing"

func TestUnclosed(t *testing.T) {
	for source, want := range map[string]string{
		"{{range .Diffs}}{{.Text}}":                                "line 1: {{range .Diffs}} has no {{end}}; write one where it ends",
		"a\n{{- range .Diffs -}}\n{{if .Text}}x{{else}}y{{end}}\n": "line 2: {{- range .Diffs -}} has no {{end}}; write one where it ends",
		"{{range .Diffs}}{{end}}\n\n{{ if .Title }}":               "line 3: {{ if .Title }} has no {{end}}; write one where it ends",
		"{{range .Diffs}}\n{{with .Text}}{{.}}":                    "line 2: {{with .Text}} has no {{end}}; write one where it ends",
		`{{/* {{range}} */}}{{if eq .Title "}}{{end}}"}}x`:         `line 1: {{if eq .Title "}}{{end}}"}} has no {{end}}; write one where it ends`,
		"{{range .Diffs}}{{.Nme}}{{with}":                          "line 1: bad character U+007D '}'",
	} {
		if err := NewTemplate(source).Validate(); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", source, err, want)
		}
	}
	for _, source := range []string{"", "{{end}}", "{{.Title}}", "{{range .Diffs}}{{end}}", "{{range .Diffs}}{{", "{{/* a"} {
		if got := unclosed(source); got != "" {
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
		if NewTemplate(source).Validate() == nil && unclosed(source) != "" {
			t.Errorf("%q is valid, but: %s", source, unclosed(source))
		}
	})
}
