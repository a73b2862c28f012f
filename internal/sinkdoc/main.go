// Command sinkdoc writes docs/sinks: a page for each kind of sink, from the comments of
// its package and of the fields of its Config, and an index. It is run by go generate.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/doc"
	"os"
	"regexp"
	"strings"
	"text/template"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sinkdoc ROOT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "sinkdoc: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pages of the module at root.
func run(root string) error {
	sinks, err := readSinks(root)
	if err != nil {
		return err
	}
	pages, err := write(sinks)
	if err != nil {
		return err
	}
	for path, page := range pages {
		if err := os.WriteFile(root+"/docs/sinks/"+path, []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}

//go:embed page.tmpl
var pageTemplate string

//go:embed index.md
var indexText string

// kindsMark is where the table of kinds stands in the index.
const kindsMark = "<!-- kinds -->\n"

// page is what pageTemplate shows.
type page struct {
	Kind, Doc, Example string
	Picture            bool
	Sent, SentAs       string
	Fields             []row
	Files              []string // fields that can be given as FIELD_file
}

// row is one field in a table.
type row struct{ Name, Type, Default, Doc string }

// write returns the files of docs/sinks, by name.
func write(sinks []sink) (map[string]string, error) {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	pages := make(map[string]string)
	var kinds strings.Builder
	kinds.WriteString("| kind | what it does |\n|---|---|\n")
	for _, s := range sinks {
		var b bytes.Buffer
		if err := t.Execute(&b, pageOf(s)); err != nil {
			return nil, err
		}
		pages[s.kind+".md"] = b.String()
		name := fmt.Sprintf("[`%s`](%s.md)", s.kind, s.kind)
		if len(s.fields) == 0 {
			name += ", in Go"
		}
		fmt.Fprintf(&kinds, "| %s | %s |\n", name, cell(synopsis(s)))
	}
	index, rest, ok := strings.Cut(indexText, kindsMark)
	if !ok {
		return nil, fmt.Errorf("index.md has no line %q", kindsMark)
	}
	for _, s := range sinks {
		if !strings.Contains(index+rest, "`"+s.kind+"`") {
			return nil, fmt.Errorf("index.md does not say when to choose `%s`", s.kind)
		}
	}
	pages["README.md"] = generated + index + kinds.String() + rest
	return pages, nil
}

// generated begins every page.
const generated = "<!-- Made by go generate ./internal/sinkdoc from what stands in sinks: change it there. -->\n\n"

func pageOf(s sink) page {
	p := page{Kind: s.kind, Doc: about(s), Example: strings.TrimSpace(s.example), Picture: s.picture, Sent: strings.TrimSpace(s.sent), SentAs: "text"}
	if strings.HasPrefix(p.Sent, "{") {
		p.SentAs = "json"
	}
	for _, f := range s.fields {
		r := row{Name: "`" + f.name + "`", Type: f.typ, Default: value(f.byDefault), Doc: cell(f.doc)}
		if f.required {
			r.Default = "required"
		}
		if f.typ == templated {
			r.Type = "[" + templated + "](README.md#templates)"
		}
		if f.inFile {
			p.Files = append(p.Files, "`"+f.name+"_file`")
		}
		p.Fields = append(p.Fields, r)
	}
	return p
}

// value is a default in a table: what can be written as it is stands in code.
func value(text string) string {
	text = cell(text)
	if text == "" || text == "none" || strings.ContainsAny(text, " `") {
		return text
	}
	return "`" + strings.ReplaceAll(text, `\`, "") + "`"
}

// about is the comment of the package, for people who do not see it as one.
func about(s sink) string {
	text := linked.ReplaceAllString(markdown(s.doc), "<$1>")
	for _, begin := range []string{"Package " + s.kind + " is the sink that ", "Package " + s.kind + " "} {
		if rest, ok := strings.CutPrefix(text, begin); ok {
			return "The sink `" + s.kind + "` " + rest
		}
	}
	return text
}

// synopsis is the first sentence of the comment, without its beginning.
func synopsis(s sink) string {
	text := new(doc.Package).Synopsis(s.doc)
	text = strings.TrimPrefix(text, "Package "+s.kind+" ")
	text = strings.TrimPrefix(text, "is the sink that ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// linked is an address that links to itself, as addresses in comments do.
var linked = regexp.MustCompile(`\[(https?://[^\]]+)\]\([^)]+\)`)

// cell makes text fit for one cell of a table. Addresses in it are examples, not links.
func cell(text string) string {
	text = linked.ReplaceAllString(text, "`$1`")
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
