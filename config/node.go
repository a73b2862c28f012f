package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
)

// typesInFiles are the types whose value can stand in a file of its own.
var typesInFiles = map[reflect.Type]bool{reflect.TypeFor[registry.Secret](): true, reflect.TypeFor[registry.Template](): true}

// scalarTypes names the types that parseScalar reads, for errors.
var scalarTypes = map[reflect.Type]string{
	reflect.TypeFor[time.Duration]():      "a duration such as 10s, 5m or 1h",
	reflect.TypeFor[netip.Prefix]():       "a network such as 10.0.0.0/8",
	reflect.TypeFor[listenAddr]():         "an address such as 127.0.0.1:9000",
	reflect.TypeFor[rate]():               "a rate such as 1/s or 30/m",
	reflect.TypeFor[registry.Size]():      "a size such as 256MB or 1GiB",
	reflect.TypeFor[pipeline.Interval]():  `a duration such as 10s, 5m or 1h, two such as "10m to 24h", a cron line, or never`,
	reflect.TypeFor[retryLimit]():         "a duration such as 12h or 30d, or never",
	reflect.TypeFor[digestTime]():         `a duration such as 1h or a cron line such as "0 9 * * 1-5 Europe/Berlin"`,
	reflect.TypeFor[share]():              "a share such as 50%",
	reflect.TypeFor[pipeline.MinChange](): "a number of tokens such as 5, or a share of the text such as 2%",
	reflect.TypeFor[pipeline.Amount]():    "a number such as 100",
}

// decodeScalar fills v, of one of the scalarTypes.
func (d *decoder) decodeScalar(n ast.Node, v reflect.Value, path, what string) {
	s, ok := d.expandedValue(n)
	if !ok {
		return
	}
	if _, scalar := n.(ast.ScalarNode); !scalar {
		d.failNode(n, "%s must be %s, not %s", path, what, describeNode(n))
	} else if err := parseScalar(s, v.Addr().Interface()); err != nil {
		d.failNode(n, "%s: %v", path, err)
	}
}

// stringValue returns the text of n with its variables expanded; it must not be empty.
func (d *decoder) stringValue(n ast.Node, path string) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		d.failNode(n, "%s must be a string, not %s; write it in quotes: %q", path, describeNode(n), d.rawValue(n))
		return "", false
	case *ast.MappingNode: // within { } a:9092 is one
		d.failNode(n, "%s must be a string, not a mapping; if it contains a colon, write it in quotes", path)
		return "", false
	default:
		d.failNode(n, "%s must be a string, not %s", path, describeNode(n))
		return "", false
	}
	s, ok := d.expandedValue(n)
	if ok && s == "" {
		d.failNode(n, "%s is empty; give it a value or remove the key", path)
		return "", false
	}
	return s, ok
}

// expandedValue returns the value of the scalar n with its variables expanded. For any other node it
// returns "", which all callers refuse.
func (d *decoder) expandedValue(n ast.Node) (string, bool) {
	s, err := expandVariables(d.rawValue(n), d.lookUpVariable)
	if err != nil {
		d.failNode(n, "%v", err)
		return "", false
	}
	_, _ = io.WriteString(d.digest, s+"\x00") // a digest takes everything
	return s, true
}

// rawValue returns the text of the scalar n.
func (d *decoder) rawValue(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case ast.ScalarNode:
		return n.GetToken().Value
	}
	return ""
}

// decodeSecret fills v from n. Its messages do not show the value.
func (d *decoder) decodeSecret(n ast.Node, v *registry.Secret, path string) {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
	default:
		d.failNode(n, "%s must be a string; write it in quotes", path)
		return
	}
	switch s, ok := d.expandedValue(n); {
	case !ok:
	case s == "":
		d.failNode(n, "%s is empty; give it a value or remove the key", path)
	default:
		*v = registry.NewSecret(s)
	}
}

// decodeTemplate fills v from source, which stands at n.
func (d *decoder) decodeTemplate(n ast.Node, v *registry.Template, path, source string) {
	*v = templates.New(source)
	if err := render.TryTemplate(*v); err != nil {
		d.failNode(n, "%s: %v", path, err)
	}
}

// decodeNamedFile fills v with the file whose path stands at n.
func (d *decoder) decodeNamedFile(n ast.Node, v *registry.File, path string) {
	name, ok := d.stringValue(n, path)
	if !ok {
		return
	}
	d.onFile(name)
	content, err := readFile(name)
	if err != nil {
		d.failNode(n, "%s: %v", path, err)
		return
	}
	_, _ = d.digest.Write(content)
	*v = registry.File{Path: name, Content: content}
}

// decodeFromFile fills v, which has one of the typesInFiles, from the file that n names.
func (d *decoder) decodeFromFile(n ast.Node, v reflect.Value, path string) {
	var name string
	d.decodeValue(n, reflect.ValueOf(&name).Elem(), path)
	if name == "" {
		return
	}
	direct := strings.TrimSuffix(path, "_file")
	if _, both := d.positions.get(direct); both {
		d.failNode(n, "both %s and %s are set; keep one", direct, path)
		return
	}
	d.positions.set(direct, positionOf(n)) // errors about the value name the line of the file option
	d.onFile(name)
	b, err := readFile(name)
	if err != nil {
		d.failNode(n, "%s: %v", path, err)
		return
	}
	_, _ = d.digest.Write(b)
	s := strings.TrimRight(string(b), "\r\n")
	if s == "" {
		d.failNode(n, "%s: %s is empty", path, name)
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *registry.Secret:
		*p = registry.NewSecret(s)
	case *registry.Template:
		d.decodeTemplate(n, p, path, s)
	}
}

// resolveAlias follows anchors and aliases. It returns nil after a mistake.
func (d *decoder) resolveAlias(n ast.Node) ast.Node {
	for range maxDepth {
		if d.visitedNodes++; d.visitedNodes > maxNodes {
			if d.visitedNodes == maxNodes+1 {
				d.failNode(n, "the configuration is too large: with its aliases resolved it has more than %d values", maxNodes)
				d.truncated = true
			}
			return nil
		}
		switch m := n.(type) {
		case *ast.AnchorNode:
			n = m.Value
		case *ast.AliasNode:
			target, ok := d.anchors[m.Value.GetToken().Value]
			if !ok {
				d.failNode(n, "no anchor &%s is defined", m.Value.GetToken().Value)
				return nil
			}
			n = target
		case *ast.TagNode:
			d.failNode(n, "tags such as %s are not supported; remove it", m.Start.Value)
			return nil
		default:
			return n
		}
	}
	d.failNode(n, "the alias refers to itself")
	return nil
}

// Visit collects the anchors of a file.
func (d *decoder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		name := a.Name.GetToken().Value
		if _, defined := d.anchors[name]; defined {
			d.anchorRedefined = true
		}
		d.anchors[name] = a.Value
	}
	return d
}

func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return k.GetToken().Value, true
	}
	return "", false
}

// positionOf returns where n begins: for a mapping that is its first key.
func positionOf(n ast.Node) position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// describeNode says what n is, for a message.
func describeNode(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return fmt.Sprintf("the string %q", clip(n.Value))
	case *ast.LiteralNode:
		return fmt.Sprintf("the string %q", clip(n.Value.Value))
	case *ast.BoolNode:
		return n.GetToken().Value
	case *ast.NullNode:
		return "nothing"
	case ast.ScalarNode:
		return "the number " + clip(n.GetToken().Value)
	}
	return "a " + strings.ToLower(n.Type().YAMLName())
}

// clip shortens s for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// fieldsOf returns the settable fields of the struct type t by the names of their yaml
// tags, or else json tags; embedded structs without a tag are part of t. The index of a field is that of
// reflect.Value.FieldByIndex.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(map[string]reflect.StructField)
	}
	fields := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(t) {
		if key := keyOf(f); key != "" && f.IsExported() {
			fields[key] = f
		}
	}
	fieldsByType.Store(t, fields)
	return fields
}

// keyOf returns the key of f, or nothing.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), f.Tag.Get("json")), ",")
	return strings.TrimPrefix(key, "-")
}

// fieldsByType has the results of fieldsOf, because a file may have many values of a type.
var fieldsByType sync.Map

// expandVariables replaces ${NAME} by the value of the variable NAME, and ${NAME:-default} by its value or, if
// the variable is unset or empty, by default. "$${" is a literal "${"; any other "$" is kept. The
// YAML is parsed before, so a value cannot add YAML; values are not expanded a second time. The
// errors do not contain s, which may be a secret.
func expandVariables(s string, lookup func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		body, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok {
			return "", errors.New("a ${ has no closing brace; write ${NAME}, or $${ for a plain ${")
		}
		name, byDefault, hasDefault := strings.Cut(body, ":-")
		switch {
		case !isVariableName(name):
			return "", errors.New("a ${...} does not hold the name of a variable; write ${NAME} or ${NAME:-default}, or $${ for a plain ${")
		case strings.Contains(byDefault, "${"):
			return "", fmt.Errorf("the default of ${%s} holds another variable, which is not supported", name)
		}
		v, set := lookup(name)
		switch {
		case hasDefault && v == "":
			v = byDefault
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set; set it, or write ${%s:-default}", name, name)
		}
		b.WriteString(v)
		s = rest
	}
}

// isVariableName reports whether s can name an environment variable.
func isVariableName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
