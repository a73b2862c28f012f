package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// templated is the configuration of a sink for people.
type templated struct {
	Template registry.Template `yaml:"template"`
}

// parseTemplate reads a file with one sink, whose options are options, and returns them.
func parseTemplate(options string, try func(string) error) (templated, error) {
	var got templated
	var r registry.Registry
	r.Sink("people", func(decode registry.Decode, _ registry.Env) (pipeline.Sink, error) {
		return pipeline.SinkFunc(nil), decode(&got)
	})
	_, err := Parse("c.yaml", []byte("sinks:\n  a:\n    people:\n      "+options), Options{Registry: &r, TryTemplate: try})
	return got, err
}

func TestTemplates(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct{ options, source, mistake string }{
		{"template: '{{.title}}'", "{{.title}}", ""},
		{"template: |\n        {{.title}}\n        {{.url}}", "{{.title}}\n{{.url}}", ""},
		{"template_file: " + file("good", "{{.title}} ${HOME}\n"), "{{.title}} ${HOME}", ""},
		{"template: '{{.title'", "", "c.yaml:4:17: sinks.a.people.template: line 1: unclosed action"},
		{"template: '{{range 9}}{{end}}'", "", "c.yaml:4:17: sinks.a.people.template: line 1: range goes over a field"},
		{"template_file: " + file("bad", "\n{{env}}"), "", `c.yaml:4:22: sinks.a.people.template_file: line 2: there is no function "env"`},
		{"template_file: " + filepath.Join(dir, "none"), "", "does not exist"},
		{"template: 'a'\n      template_file: " + file("both", "x"), "", "both sinks.a.people.template and sinks.a.people.template_file are given"},
		{"template: ''", "", "template is empty"},
		{"template: 7", "", "must be a text"},
		{"templat: x", "", `did you mean "template"`},
	} {
		got, err := parseTemplate(tt.options, render.TryTemplate)
		switch {
		case tt.mistake != "":
			if err == nil || !strings.Contains(err.Error(), tt.mistake) {
				t.Errorf("%s: got %v, want %q", tt.options, err, tt.mistake)
			}
		case err != nil || strings.TrimSpace(string(got.Template)) != tt.source:
			t.Errorf("%s: got %q, %v", tt.options, string(got.Template), err)
		}
	}
}

// A template that was found valid is tried, if there is a way to, and only then.
func TestTemplatesAreTried(t *testing.T) {
	var tried []string
	try := func(source string) error {
		tried = append(tried, source)
		return errors.New("fails for a digest")
	}
	_, err := parseTemplate("template: '{{.titel}}'", try)
	if err == nil || !strings.Contains(err.Error(), "c.yaml:4:17: sinks.a.people.template: fails for a digest") {
		t.Errorf("got %v", err)
	}
	if _, err := parseTemplate("template: '{{'", try); err == nil {
		t.Error("what is no template was taken")
	}
	if len(tried) != 1 || tried[0] != "{{.titel}}" {
		t.Errorf("tried %q, want one", tried)
	}
	if _, err := parseTemplate("template: '{{.titel}}'", nil); err != nil {
		t.Errorf("got %v without a way to try it", err)
	}
}
