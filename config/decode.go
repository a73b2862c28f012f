package config

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Bounds that no honest configuration comes near.
const (
	maxDepth = 50
	maxNodes = 1_000_000 // visited, so that aliases of aliases end
)

// position is a place in the file, counted from 1.
type position struct{ line, column int }

// decoder fills Go values from the nodes of a file, strictly, and goes on after a
// mistake so that all are found. Paths such as subscriptions[0].url name what it read.
type decoder struct {
	file            string
	source          []string // the lines of the file
	counts          tokenCounts
	rootKeys        map[string]position // of the file itself
	lookupEnv       func(string) (string, bool)
	anchors         map[string]ast.Node
	anchorRedefined bool // an anchor is defined again
	positions       positionTable
	brokenPaths     map[string]bool              // paths that were not decoded, so that their keys are not known
	errorPositions  map[position]bool            // where errs are
	onFile          func(path string)            // is called with the files that the configuration names
	sinkDigests     map[string][sha256.Size]byte // digests of the options of sinks
	readerDigests   map[string][sha256.Size]byte // of readers, nil where there are none
	digest          hash.Hash                    // of the variables and files that were read
	maskedValues    map[string]string            // values of variables, and how messages show them
	visitedNodes    int
	depth           int
	truncated       bool // the rest of the file was not read, so that what seems to be missing is no mistake
	errs            Errors
	warnings        Errors
}

// yamlDecoder is a type that is written in more than one way.
type yamlDecoder interface {
	decodeYAML(d *decoder, n ast.Node, path string)
}

// failAt reports a mistake at p.
func (d *decoder) failAt(p position, format string, args ...any) {
	d.report(&Error{d.file, p.line, p.column, fmt.Sprintf(format, args...)})
}

// report adds e. It names variables in place of their values, which may be secret.
func (d *decoder) report(e *Error) {
	if d.truncated {
		return
	}
	e.Message = oneLine(d.maskVariables(e.Message))
	d.errs = append(d.errs, e)
	d.errorPositions[position{e.Line, e.Column}] = true
}

// minMaskedLength is the length in bytes from which the value of a variable is masked. A shorter value
// occurs in many messages by chance.
const minMaskedLength = 4

// lookUpVariable returns the value of the variable name, and remembers it for maskVariables.
func (d *decoder) lookUpVariable(name string) (string, bool) {
	v, ok := d.lookupEnv(name)
	if len(v) >= minMaskedLength {
		d.maskedValues[v] = "${" + name + "}"
		d.maskedValues[strings.Trim(strconv.Quote(v), `"`)] = "${" + name + "}"
	}
	return v, ok
}

// maskVariables replaces the values of variables in message, the longest first.
func (d *decoder) maskVariables(message string) string {
	values := slices.SortedFunc(maps.Keys(d.maskedValues), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, v := range values {
		message = strings.ReplaceAll(message, v, d.maskedValues[v])
	}
	return message
}

// failNode reports a mistake at n.
func (d *decoder) failNode(n ast.Node, format string, args ...any) {
	d.failAt(positionOf(n), format, args...)
}

// failPath reports a mistake at path.
func (d *decoder) failPath(path, format string, args ...any) {
	d.failAt(d.positionOfPath(path), format, args...)
}

// positionOfPath returns where path stands, or what holds it where path itself is missing.
func (d *decoder) positionOfPath(path string) position {
	for {
		if p, ok := d.positions.get(path); ok || path == "" {
			return p
		}
		path = parentPath(path)
	}
}

// parentPath cuts the last step off a path.
func parentPath(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}

// joinPath returns the path of key within path.
func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// decodeValue fills v from n.
func (d *decoder) decodeValue(n ast.Node, v reflect.Value, path string) {
	n = d.resolveAlias(n)
	if n == nil {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	d.positions.set(path, positionOf(n))
	if _, null := n.(*ast.NullNode); null {
		if commentIn(d.sourceLine(positionOf(n).line)) > 0 {
			d.failNode(n, "%s has no value: %s", path, commentHint)
			return
		}
		d.failNode(n, "%s has no value; give it one or remove the key", path)
		return
	}
	switch p := v.Addr().Interface().(type) {
	case yamlDecoder:
		p.decodeYAML(d, n, path)
		return
	case *registry.Secret:
		d.decodeSecret(n, p, path)
		return
	case *registry.File:
		d.decodeNamedFile(n, p, path)
		return
	case *registry.Texts:
		if _, several := n.(*ast.SequenceNode); !several {
			if s, ok := d.stringValue(n, path); ok {
				*p = registry.Texts{s}
			}
			return
		}
	case *[]pipeline.Selector:
		d.decodeSelectors(n, p, path)
		return
	case *pipeline.Digest:
		d.decodeDigest(n, p, path)
		return
	case *pipeline.Expire:
		d.decodeExpire(n, p, path)
		return
	case *registry.Template:
		if s, ok := d.stringValue(n, path); ok {
			d.decodeTemplate(n, p, path, s)
		}
		return
	}
	if s, isWord := scalarTypes[v.Type()]; isWord {
		d.decodeScalar(n, v, path, s)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := d.stringValue(n, path); ok {
			if err := u.UnmarshalText([]byte(s)); err != nil {
				d.failNode(n, "%s: %v", path, err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		before := len(d.errs)
		v.Set(reflect.New(v.Type().Elem()))
		d.decodeValue(n, v.Elem(), path)
		if len(d.errs) > before {
			v.SetZero()
		}
	case reflect.Struct:
		d.decodeStruct(n, v, path)
	case reflect.Slice:
		d.decodeSlice(n, v, path)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.String:
		if s, ok := d.stringValue(n, path); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		d.decodeBool(n, v, path)
	case reflect.Int, reflect.Int64:
		d.decodeInt(n, v, path)
	default:
		panic(fmt.Sprintf("config: %s: a plugin's field has type %s, which cannot be configured", path, v.Type()))
	}
}

func (d *decoder) decodeBool(n ast.Node, v reflect.Value, path string) {
	if b, ok := n.(*ast.BoolNode); ok {
		v.SetBool(b.Value)
		return
	}
	s, ok := d.expandedValue(n)
	switch {
	case !ok:
	case s != d.rawValue(n) && (s == "true" || s == "false"):
		v.SetBool(s == "true")
	default:
		d.failNode(n, "%s must be true or false, not %s", path, describeNode(n))
	}
}

func (d *decoder) decodeInt(n ast.Node, v reflect.Value, path string) {
	s, ok := d.expandedValue(n)
	if !ok {
		return
	}
	i, err := strconv.ParseInt(s, 10, 64)
	_, number := n.(*ast.IntegerNode)
	if err != nil || v.OverflowInt(i) || !number && s == d.rawValue(n) {
		d.failNode(n, "%s must be a whole number, not %s", path, describeNode(n))
		return
	}
	v.SetInt(i)
}

// decodeStruct fills the struct v from a mapping.
func (d *decoder) decodeStruct(n ast.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	d.eachEntry(n, path, func(key string, keyNode, value ast.Node) {
		if f, ok := fields[key]; ok {
			d.decodeValue(value, v.FieldByIndex(f.Index), joinPath(path, key))
			return
		}
		if name, inOwn := strings.CutSuffix(key, "_file"); inOwn && typesInFiles[fields[name].Type] {
			d.decodeFromFile(value, v.FieldByIndex(fields[name].Index), joinPath(path, key))
			return
		}
		var known []string
		for name, f := range fields {
			known = append(known, name)
			if typesInFiles[f.Type] {
				known = append(known, name+"_file")
			}
		}
		slices.Sort(known)
		// The key that was probably meant is not reported as missing too.
		if meant, _ := nearest.Name(key, known); nearest.Likely(key, meant) {
			if _, given := d.positions.get(joinPath(path, meant)); !given {
				d.positions.set(joinPath(path, meant), positionOf(keyNode))
			}
		}
		where := ""
		if path != "" {
			where = " in " + path
		}
		d.failNode(keyNode, "unknown key%s%s; %s", quotedKey(key), where, nearest.Hint(key, known))
	})
}

// eachEntry calls each for every entry of n, which must be a mapping without repeated keys.
func (d *decoder) eachEntry(n ast.Node, path string, each func(key string, keyNode, value ast.Node)) {
	what := cmp.Or(path, "the configuration")
	m, ok := n.(*ast.MappingNode)
	if !ok {
		given := "a string" // not shown, since it may be meant as a secret
		switch n.(type) {
		case *ast.StringNode, *ast.LiteralNode:
		default:
			given = describeNode(n)
		}
		d.failNode(n, "%s must be a mapping of keys to values, not %s", what, given)
		d.brokenPaths[path] = true
		return
	}
	if d.depth > maxDepth {
		d.failNode(n, "%s is nested too deeply", what)
		return
	}
	seen := d.rootKeys // a file may be decoded in pieces
	if path != "" {
		seen = make(map[string]position, len(m.Values))
	}
	for _, entry := range m.Values {
		if _, merge := entry.Key.(*ast.MergeKeyNode); merge {
			d.failNode(entry.Key, "%s has a merge key (<<), which is not supported; write its keys out, with aliases such as KEY: *NAME for their values", what)
			d.brokenPaths[path] = true // its keys are not known
			continue
		}
		key, ok := keyText(entry.Key)
		if !ok {
			d.failNode(entry.Key, "a key of %s must be a plain word", what)
			continue
		}
		at := positionOf(entry.Key)
		if first, dup := seen[key]; dup {
			d.failAt(at, "%s is set twice; line %d sets it already", joinPath(path, key), first.line)
			continue
		}
		seen[key] = at
		each(key, entry.Key, entry.Value)
	}
}

// decodeSlice fills the slice v from a sequence.
func (d *decoder) decodeSlice(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		hint := ""
		if s, isText := n.(ast.ScalarNode); isText {
			hint = fmt.Sprintf("; write [%s]", s)
		}
		d.failNode(n, "%s must be a list, not %s%s", path, describeNode(n), hint)
		return
	}
	if d.depth > maxDepth {
		d.failNode(n, "%s is nested too deeply", path)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.decodeValue(item, v.Index(i), at)
		if _, text := item.(*ast.StringNode); text && !seq.IsFlowStyle {
			d.warnOfCutValue(positionOf(item), at)
		}
	}
}

// decodeMap fills the map v, whose keys are strings, from a mapping. A value that can stand in a file of
// its own does so where its key ends in _file.
func (d *decoder) decodeMap(n ast.Node, v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	d.eachEntry(n, path, func(key string, _, value ast.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		if name, inOwn := strings.CutSuffix(key, "_file"); inOwn && typesInFiles[e.Type()] {
			d.decodeFromFile(value, e, joinPath(path, key))
			key = name
		} else {
			d.decodeValue(value, e, joinPath(path, key))
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
	})
}
