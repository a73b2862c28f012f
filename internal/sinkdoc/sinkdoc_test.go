package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// The pages say what the code says.
func TestPagesAreUpToDate(t *testing.T) {
	sinks, err := readSinks(root)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := renderPages(sinks)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, "docs", "sinks", name))
		if err != nil || string(got) != want {
			t.Errorf("docs/sinks/%s is out of date (%v): run go generate ./internal/sinkdoc", name, err)
		}
	}
	want, err := describe(sinks)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(root + describedFile); err != nil || string(got) != string(want) {
		t.Errorf("%s is out of date (%v): run go generate ./internal/sinkdoc", describedFile, err)
	}
	written, err := filepath.Glob(filepath.Join(root, "docs", "sinks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range written {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := pages[filepath.Base(path)]; !known && strings.HasPrefix(string(text), generatedNote) {
			t.Errorf("%s is the page of a sink that there is no more", path)
		}
	}
}

// moduleOf makes a module with one sink, whose files are given.
func moduleOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFields(t *testing.T) {
	dir := moduleOf(t, map[string]string{
		"sinks/pigeon/doc.go":                       "// Package pigeon is the sink that sends pigeons.\n//\n// They come back.\npackage pigeon\n",
		"sinks/pigeon/example.yaml":                 "sinks: {a: {pigeon: {}}}\n",
		"docs/images/pigeon.png":                    "a picture",
		"sinks/pigeon/testdata/changes.golden.json": "{\"coo\": 1}\n",
		"sinks/pigeon/doc_test.go":                  "// Package pigeon_test is none of this.\npackage pigeon_test\n",
		"shared/tls.go":                             "package shared\n// TLS is for all.\ntype TLS struct {\n// CA is a file, such as a|b, beside Wait. Default: that of the system.\nCA string `yaml:\"ca\"`\n}\n",
		"sinks/pigeon/config.go": `package pigeon

import other "github.com/vokter/vokter/shared"

// Config is what stands in the configuration.
type Config struct {
	// Token is the key to the loft,
	// in one line. Required.
	Token registry.Secret ` + "`yaml:\"token\"`" + `
	// OldToken opens it too, beside Token. Token goes first.
	OldToken registry.Secret ` + "`yaml:\"old_token,omitempty\"`" + `
	// TLS says how to encrypt: TLS it is.
	TLS *other.TLS ` + "`yaml:\"tls\"`" + `
	Common
	// Wait is in no hurry. Default 10s.
	Wait time.Duration ` + "`yaml:\"wait\"`" + `
	// Text is shown.
	Text registry.Template ` + "`yaml:\"text\"`" + `
	// Mode is one or two.
	Mode mode ` + "`yaml:\"mode\"`" + `
	unseen int
	Ignored int ` + "`yaml:\"-\"`" + `
}

type mode string

// Common is in it.
type Common struct {
	// Names are called.
	Names map[string][]string ` + "`yaml:\"names\"`" + `
}
`,
	})
	sinks, err := readSinks(dir)
	if err != nil || len(sinks) != 1 {
		t.Fatalf("got %v, %v", sinks, err)
	}
	want := []field{
		{name: "token", typeName: "secret", inFile: true, required: true, doc: "The key to the loft, in one line."},
		{name: "old_token", typeName: "secret", inFile: true, doc: "`old_token` opens it too, beside `token`. Token goes first."},
		{name: "tls", typeName: "mapping", doc: "TLS says how to encrypt: TLS it is."},
		{name: "tls.ca", typeName: "string", defaultValue: "that of the system", doc: "A file, such as a|b, beside `wait`."},
		{name: "names", typeName: "mapping of names to lists of strings", doc: "called."},
		{name: "wait", typeName: "duration", defaultValue: "10s", doc: "In no hurry."},
		{name: "text", typeName: "template", inFile: true, doc: "shown."},
		{name: "mode", typeName: "string", doc: "one or two."},
	}
	for i, f := range sinks[0].fields {
		f.doc = strings.ReplaceAll(f.doc, "\n", " ")
		if i >= len(want) || f != want[i] {
			t.Errorf("field %d: got %+v", i, f)
		}
	}
	if len(sinks[0].fields) != len(want) {
		t.Errorf("%d fields, want %d", len(sinks[0].fields), len(want))
	}
	page := pageOf(sinks[0])
	if !strings.HasPrefix(page.Doc, "The sink `pigeon` sends pigeons.") || synopsis(sinks[0]) != "Sends pigeons." {
		t.Errorf("got %q and %q", page.Doc, synopsis(sinks[0]))
	}
	if !page.Picture {
		t.Error("the picture is not shown")
	}
	if page.Sent != `{"coo": 1}` || page.SentAs != "json" {
		t.Errorf("what is sent: got %q as %s", page.Sent, page.SentAs)
	}
	if got := page.Fields[3]; got != (tableRow{"`tls.ca`", "string", "that of the system", `A file, such as a\|b, beside ` + "`wait`."}) {
		t.Errorf("got %+v", got)
	}
}

// What is not documented is refused.
func TestRefusals(t *testing.T) {
	good := map[string]string{
		"sinks/a/a.go":         "// Package a is a sink.\npackage a\n",
		"sinks/a/config.go":    "package a\ntype Config struct {\n// X is X.\nX string `yaml:\"x\"`\n}\n",
		"sinks/a/example.yaml": "sinks: {}\n",
	}
	for _, tt := range []struct{ file, content, want string }{
		{"sinks/a/a.go", "package a\n", "sinks/a: the package has no comment"},
		{"sinks/a/config.go", "package a\ntype Config struct {\nX string `yaml:\"x\"`\n}\n", "sinks/a: the field x has no comment"},
		{"sinks/a/config.go", "package a\ntype Config struct {\n// X is X.\nX chan int `yaml:\"x\"`\n}\n", "sinks/a: the field x: its type"},
		{"sinks/a/config.go", "package a\ntype Config struct {\n// X is X.\nX struct{ Y int `yaml:\"y\"` } `yaml:\"x\"`\n}\n", "the field x.y has no comment"},
		{"sinks/a/example.yaml", "", "sinks/a: it has no example.yaml"},
	} {
		files := maps.Clone(good)
		if files[tt.file] = tt.content; tt.content == "" {
			delete(files, tt.file)
		}
		if _, err := readSinks(moduleOf(t, files)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.file, err, tt.want)
		}
	}
	if _, err := readSinks(moduleOf(t, good)); err != nil {
		t.Errorf("the good one: %v", err)
	}
	if _, err := renderPages([]sink{{kind: "unheard-of", doc: "x"}}); err == nil || !strings.Contains(err.Error(), "index.md") {
		t.Errorf("got %v for a kind that the index does not know", err)
	}
}
