package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const module = "github.com/vokter/vokter/"

// sink describes a kind of sink.
type sink struct {
	kind        string
	doc         string // the comment of its package
	example     string // a configuration with one such sink
	hasPicture  bool   // docs/images has a picture of a notification
	sentExample string // an example of what it sends, a golden file of its tests
	fields      []field
}

// field is one key of the configuration of a sink.
type field struct {
	name     string // with the names of the mappings around it: tls.ca
	typeName string
	// inFile says that the value can also be read from a file, as name_file.
	inFile bool
	// required and defaultValue come from "Required." and "Default: ..." in the comment.
	required     bool
	defaultValue string
	doc          string
}

// readSinks reads the folders of sinks, in alphabetical order. A folder without config.go
// is a sink for programs only.
func readSinks(root string) ([]sink, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "sinks", "*", "*.go"))
	if err != nil {
		return nil, err
	}
	var sinks []sink
	for _, path := range dirs {
		kind := filepath.Base(filepath.Dir(path))
		if n := len(sinks); n > 0 && sinks[n-1].kind == kind {
			continue
		}
		s, err := readSink(root, kind)
		if err != nil {
			return nil, fmt.Errorf("sinks/%s: %w", kind, err)
		}
		sinks = append(sinks, s)
	}
	return sinks, nil
}

func readSink(root, kind string) (sink, error) {
	r := &reader{root: root, packages: make(map[string]*pkg)}
	p, err := r.load("sinks/" + kind)
	if err != nil {
		return sink{}, err
	}
	s := sink{kind: kind, doc: p.doc}
	if s.doc == "" {
		return s, errors.New("the package has no comment")
	}
	config, ok := p.types["Config"]
	if !ok {
		return s, nil
	}
	if s.fields, err = r.fields(p, config, "", nil); err != nil {
		return s, err
	}
	example, err := os.ReadFile(filepath.Join(root, "sinks", kind, "example.yaml"))
	if err != nil && len(s.fields) == 0 {
		return s, nil // it is for programs only
	}
	if err != nil {
		return s, errors.New("it has no example.yaml: a configuration with one such sink")
	}
	s.example = string(example)
	_, err = os.Stat(filepath.Join(root, "docs", "images", kind+".png"))
	s.hasPicture = err == nil
	s.sentExample, err = readSentExample(filepath.Join(root, "sinks", kind, "testdata"))
	return s, err
}

// sentExampleFiles are names of golden files with what a sink sends.
var sentExampleFiles = []string{"change.golden.json", "changes.golden.json", "ok.golden", "text.golden"}

// readSentExample returns the content of the first of sentExampleFiles in dir, or an empty string.
func readSentExample(dir string) (string, error) {
	for _, name := range sentExampleFiles {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return string(b), err
		}
	}
	return "", nil
}

// pkg holds the types of a package.
type pkg struct {
	name    string
	doc     string
	types   map[string]*ast.StructType
	aliases map[string]ast.Expr                   // other types, by their name
	imports map[*ast.StructType]map[string]string // imports of the file of a type: paths by name
}

// reader reads packages of the module.
type reader struct {
	root     string
	packages map[string]*pkg
}

func (r *reader) load(dir string) (*pkg, error) {
	if p, ok := r.packages[dir]; ok {
		return p, nil
	}
	files, err := filepath.Glob(filepath.Join(r.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &pkg{name: filepath.Base(dir), types: make(map[string]*ast.StructType), aliases: make(map[string]ast.Expr), imports: make(map[*ast.StructType]map[string]string)}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.add(f)
	}
	r.packages[dir] = p
	return p, nil
}

func (p *pkg) add(f *ast.File) {
	if text := f.Doc.Text(); text != "" {
		p.doc = text
	}
	imports := make(map[string]string)
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // valid, because it was parsed
		name := filepath.Base(path)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			p.types[spec.Name.Name] = s
			p.imports[s] = imports
		} else {
			p.aliases[spec.Name.Name] = spec.Type
		}
		return true
	})
}

// fields returns the YAML fields of the struct s of p, with prefix before their names. outer
// are the YAML names of the fields around it, by Go name.
func (r *reader) fields(p *pkg, s *ast.StructType, prefix string, outer map[string]string) ([]field, error) {
	known := yamlNames(s)
	for goName, name := range outer {
		if _, hidden := known[goName]; !hidden {
			known[goName] = name
		}
	}
	var all []field
	for _, f := range s.Fields.List {
		name := yamlName(f)
		if name == "" && len(f.Names) == 0 { // embedded: its fields are here
			q, inner, err := r.structOf(p, s, f.Type)
			if err != nil {
				return nil, err
			}
			if inner != nil {
				fields, err := r.fields(q, inner, prefix, known)
				if err != nil {
					return nil, err
				}
				all = append(all, fields...)
			}
			continue
		}
		if name == "" || name == "-" || len(f.Names) != 1 || !f.Names[0].IsExported() {
			continue
		}
		fields, err := r.field(p, s, f, prefix+name, known)
		if err != nil {
			return nil, err
		}
		all = append(all, fields...)
	}
	return all, nil
}

// field returns f, followed by its own fields if it is a mapping.
func (r *reader) field(p *pkg, s *ast.StructType, f *ast.Field, name string, known map[string]string) ([]field, error) {
	if strings.TrimSpace(f.Doc.Text()) == "" {
		return nil, fmt.Errorf("the field %s has no comment", name)
	}
	q, inner, err := r.structOf(p, s, f.Type)
	if err != nil {
		return nil, err
	}
	out := field{name: name}
	out.setDoc(f.Names[0].Name, f.Doc.Text(), known)
	if inner == nil {
		if out.typeName, err = describeType(p, f.Type); err != nil {
			return nil, fmt.Errorf("the field %s: %w", name, err)
		}
		out.inFile = out.typeName == typeSecret || out.typeName == typeTemplate
		return []field{out}, nil
	}
	out.typeName = "mapping"
	if _, list := f.Type.(*ast.ArrayType); list {
		out.typeName = "list of mappings"
	}
	fields, err := r.fields(q, inner, name+".", known)
	return append([]field{out}, fields...), err
}

// structOf returns the struct type that expr, in s of p, refers to, and its package. It returns
// nil if expr is no struct.
func (r *reader) structOf(p *pkg, s *ast.StructType, expr ast.Expr) (*pkg, *ast.StructType, error) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return r.structOf(p, s, e.X)
	case *ast.ArrayType:
		return r.structOf(p, s, e.Elt)
	case *ast.StructType:
		p.imports[e] = p.imports[s]
		return p, e, nil
	case *ast.Ident:
		if _, known := typeWords[p.name+"."+e.Name]; known {
			return nil, nil, nil
		}
		return p, p.types[e.Name], nil
	case *ast.SelectorExpr:
		if _, known := typeWords[qualified(e)]; known {
			return nil, nil, nil
		}
		x, _ := e.X.(*ast.Ident)
		dir, ours := strings.CutPrefix(p.imports[s][x.Name], module)
		if !ours {
			return nil, nil, nil
		}
		q, err := r.load(dir)
		if err != nil {
			return nil, nil, err
		}
		return q, q.types[e.Sel.Name], nil
	}
	return nil, nil, nil
}

func yamlName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	tag, _ := strconv.Unquote(f.Tag.Value) // valid, because it was parsed
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("yaml"), ",")
	return name
}

// yamlNames returns the YAML names of the fields of s, by Go name.
func yamlNames(s *ast.StructType) map[string]string {
	m := make(map[string]string)
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			if name := yamlName(f); name != "" {
				m[n.Name] = name
			}
		}
	}
	return m
}

// commentMarkdown returns the text of a comment as Markdown.
func commentMarkdown(text string) string {
	var p comment.Parser
	printer := comment.Printer{HeadingLevel: 2, HeadingID: func(*comment.Heading) string { return "" }}
	return strings.TrimSpace(string(printer.Markdown(p.Parse(text))))
}
