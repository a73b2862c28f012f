package main

import (
	"errors"
	"go/ast"
	"regexp"
	"strings"
)

// Types that are described by more than their kind.
const (
	secret    = "secret"
	templated = "template"
)

// words describe the Go types of fields for users.
var words = map[string]string{
	"string": "string", "bool": "true or false", "int": "whole number", "int64": "whole number",
	"registry.Secret": secret, "registry.Template": templated, "registry.Texts": "string or list of strings", "time.Duration": "duration", "netip.Prefix": "network", "pipeline.Quiet": "hours",
}

// typeName describes the type expr in p for users.
func typeName(p *pkg, expr ast.Expr) (string, error) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return typeName(p, e.X)
	case *ast.Ident:
		if w, ok := words[e.Name]; ok {
			return w, nil
		}
		if w, ok := words[p.name+"."+e.Name]; ok {
			return w, nil
		}
		if inner, ok := p.aliases[e.Name]; ok {
			return typeName(p, inner)
		}
	case *ast.SelectorExpr:
		if w, ok := words[qualified(e)]; ok {
			return w, nil
		}
	case *ast.ArrayType:
		w, err := typeName(p, e.Elt)
		return "list of " + plural(w), err
	case *ast.MapType:
		w, err := typeName(p, e.Value)
		return "mapping of names to " + plural(w), err
	}
	return "", errors.New("its type has no word yet")
}

func plural(word string) string {
	if rest, ok := strings.CutPrefix(word, "list of "); ok {
		return "lists of " + rest
	}
	return word + "s"
}

func qualified(e *ast.SelectorExpr) string {
	if x, ok := e.X.(*ast.Ident); ok {
		return x.Name + "." + e.Sel.Name
	}
	return ""
}

var (
	required  = regexp.MustCompile(`(?:^|\s)Required\.`)
	byDefault = regexp.MustCompile(`(?:^|\s)(?:Default|Absent|Empty):? (.+?)\.(\s|$)`)
)

// say sets the description of f from doc, the comment of the field goName. names are the YAML
// names of its sibling fields, by Go name.
func (f *field) say(goName, doc string, names map[string]string) {
	doc = markdown(doc)
	if required.MatchString(doc) {
		f.required, doc = true, required.ReplaceAllString(doc, "")
	}
	if m := byDefault.FindStringSubmatchIndex(doc); m != nil {
		f.byDefault = doc[m[2]:m[3]]
		doc = strings.TrimSpace(doc[:m[0]]) + " " + strings.TrimSpace(doc[m[1]:])
	}
	doc = strings.TrimSpace(doc)
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(doc, goName+verb); ok {
			doc = sentence(rest)
		}
	}
	f.doc = inYAML(doc, names)
	f.byDefault = inYAML(f.byDefault, names)
}

// begin matches the beginning of a default that is a description and not a literal value.
var begin = regexp.MustCompile(`^(a|an|the|that|those|some|what|where|whether|how|who|in|on|from|sent|shown|which) `)

func sentence(doc string) string {
	if begin.MatchString(doc) {
		return strings.ToUpper(doc[:1]) + doc[1:]
	}
	return doc
}

// inYAML replaces the Go names of fields in doc by their YAML names.
func inYAML(doc string, names map[string]string) string {
	for goName, name := range names {
		if strings.ToUpper(goName) == goName {
			continue // an abbreviation such as TLS is a word of the text
		}
		word := regexp.MustCompile(`(^|[a-z,] )` + goName + `\b`)
		doc = word.ReplaceAllString(doc, "${1}`"+name+"`")
	}
	return doc
}
