package main

import (
	"errors"
	"go/ast"
	"regexp"
	"strings"
)

// Types that are described by more than their kind.
const (
	typeSecret   = "secret"
	typeTemplate = "template"
)

// typeWords describe the Go types of fields for users.
var typeWords = map[string]string{
	"string": "string", "bool": "true or false", "int": "whole number", "int64": "whole number",
	"registry.Secret": typeSecret, "registry.Template": typeTemplate, "registry.Texts": "string or list of strings", "time.Duration": "duration", "netip.Prefix": "network", "pipeline.Quiet": "hours",
}

// describeType describes the type expr in p for users.
func describeType(p *pkg, expr ast.Expr) (string, error) {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return describeType(p, e.X)
	case *ast.Ident:
		if w, ok := typeWords[e.Name]; ok {
			return w, nil
		}
		if w, ok := typeWords[p.name+"."+e.Name]; ok {
			return w, nil
		}
		if inner, ok := p.aliases[e.Name]; ok {
			return describeType(p, inner)
		}
	case *ast.SelectorExpr:
		if w, ok := typeWords[qualified(e)]; ok {
			return w, nil
		}
	case *ast.ArrayType:
		w, err := describeType(p, e.Elt)
		return "list of " + plural(w), err
	case *ast.MapType:
		w, err := describeType(p, e.Value)
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
	requiredPattern = regexp.MustCompile(`(?:^|\s)Required\.`)
	defaultPattern  = regexp.MustCompile(`(?:^|\s)(?:Default|Absent|Empty):? (.+?)\.(\s|$)`)
)

// setDoc sets the description of f, whether it is required, and its default from doc, the comment of the
// field goName. names are the YAML names of its sibling fields, by Go name.
func (f *field) setDoc(goName, doc string, names map[string]string) {
	doc = commentMarkdown(doc)
	if requiredPattern.MatchString(doc) {
		f.required, doc = true, requiredPattern.ReplaceAllString(doc, "")
	}
	if m := defaultPattern.FindStringSubmatchIndex(doc); m != nil {
		f.defaultValue = doc[m[2]:m[3]]
		doc = strings.TrimSpace(doc[:m[0]]) + " " + strings.TrimSpace(doc[m[1]:])
	}
	doc = strings.TrimSpace(doc)
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(doc, goName+verb); ok {
			doc = capitalize(rest)
		}
	}
	f.doc = useYAMLNames(doc, names)
	f.defaultValue = useYAMLNames(f.defaultValue, names)
}

// descriptionStart matches the beginning of a default that is a description and not a literal value.
var descriptionStart = regexp.MustCompile(`^(a|an|the|that|those|some|what|where|whether|how|who|in|on|from|sent|shown|which) `)

func capitalize(doc string) string {
	if descriptionStart.MatchString(doc) {
		return strings.ToUpper(doc[:1]) + doc[1:]
	}
	return doc
}

// useYAMLNames replaces the Go names of fields in doc by their YAML names.
func useYAMLNames(doc string, names map[string]string) string {
	for goName, name := range names {
		if strings.ToUpper(goName) == goName {
			continue // an abbreviation such as TLS is a word of the text
		}
		word := regexp.MustCompile(`(^|[a-z,] )` + goName + `\b`)
		doc = word.ReplaceAllString(doc, "${1}`"+name+"`")
	}
	return doc
}
