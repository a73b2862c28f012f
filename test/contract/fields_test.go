package contract

import (
	"encoding"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// walker compares schemas with the types that make and read what they describe.
type walker struct {
	*testing.T
	seen map[string]bool // type and file
	// sent says that the type is one that we send: what is always there is required.
	sent bool
}

// TestSchemasNameEveryField: a field that is added to a type is added to its schema, with a
// description, and what a schema describes exists.
func TestSchemasNameEveryField(t *testing.T) {
	for typ, body := range bodies {
		t.Run(typ, func(t *testing.T) {
			w := &walker{T: t, seen: make(map[string]bool), sent: !commands[typ]}
			file := typ + ".json"
			w.check(typ, file, object(t, filepath.Join(schemaDir, file)), reflect.TypeOf(body))
		})
	}
}

// resolve follows the $ref of a node of file.
func (w *walker) resolve(file string, node map[string]any) (string, map[string]any) {
	w.Helper()
	ref, ok := node["$ref"].(string)
	if !ok {
		return file, node
	}
	name, pointer, _ := strings.Cut(ref, "#")
	if name != "" {
		file = name
	}
	to := object(w.T, filepath.Join(schemaDir, file))
	for _, step := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		if to, ok = to[step].(map[string]any); !ok {
			w.Fatalf("%s: %q leads nowhere", file, ref)
		}
	}
	return w.resolve(file, to)
}

// check compares a node with the type whose values it describes.
func (w *walker) check(path, file string, node map[string]any, typ reflect.Type) {
	w.Helper()
	file, node = w.resolve(file, node)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if node["additionalProperties"] == false || node["unevaluatedProperties"] == false {
		w.Errorf("%s: closed to new fields", path)
	}
	want := ""
	switch {
	case typ == reflect.TypeFor[time.Time]():
		want = "string"
		if node["format"] != "date-time" {
			w.Errorf("%s: format %v, want date-time", path, node["format"])
		}
	case typ == reflect.TypeFor[json.RawMessage](): // a change record
		want = "object"
		w.fields(path, file, node, reflect.TypeFor[flow.Change]())
	case typ == reflect.TypeFor[[]byte]():
		want = "string"
		if node["contentEncoding"] != "base64" {
			w.Errorf("%s: contentEncoding %v, want base64", path, node["contentEncoding"])
		}
	case typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()), typ == reflect.TypeFor[pipeline.MinChange](), typ.Kind() == reflect.String:
		want = "string"
	case typ.Kind() == reflect.Bool:
		want = "boolean"
	case typ.Kind() == reflect.Map:
		want = "object"
	case typ == reflect.TypeFor[pipeline.Expire](): // it writes its fields itself
		want = "object"
		w.fields(path, file, node, reflect.TypeFor[struct {
			After int    `json:"after,omitempty"`
			Retry string `json:"retry,omitempty"`
		}]())
	case typ.Kind() == reflect.Struct:
		want = "object"
		w.fields(path, file, node, typ)
	case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array:
		want = "array"
		items, ok := node["items"].(map[string]any)
		if !ok {
			w.Errorf("%s: no items", path)
			break
		}
		w.check(path+"[]", file, items, typ.Elem())
	case typ.ConvertibleTo(reflect.TypeFor[int64]()):
		want = "integer"
	}
	if !allows(node, want) {
		w.Errorf("%s: type %v, want %s", path, node["type"], want)
	}
}

// allows reports whether node describes values of a JSON type.
func allows(node map[string]any, typ string) bool {
	switch t := node["type"].(type) {
	case string:
		return t == typ
	case []any:
		return slices.Contains(t, any(typ))
	}
	if alternatives, ok := node["oneOf"].([]any); ok {
		return slices.ContainsFunc(alternatives, func(one any) bool { return allows(one.(map[string]any), typ) })
	}
	values, ok := node["enum"].([]any)
	return ok && typ == "string" && len(values) > 0
}

// fields compares the properties of node with the fields of a struct.
func (w *walker) fields(path, file string, node map[string]any, typ reflect.Type) {
	w.Helper()
	if w.seen[typ.String()+" "+file] {
		return
	}
	w.seen[typ.String()+" "+file] = true
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	known := make(map[string]bool)
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			if name == "" && !f.Anonymous && f.IsExported() {
				w.Errorf("%s: the field %s has no JSON name", path, f.Name)
			}
			continue
		}
		known[name] = true
		property, ok := properties[name].(map[string]any)
		if !ok {
			w.Errorf("%s: the schema %s lacks %q", path, file, name)
			continue
		}
		if d, _ := property["description"].(string); d == "" {
			w.Errorf("%s.%s: no description", path, name)
		}
		always := !strings.Contains(options, "omit")
		if is := slices.Contains(required, any(name)); w.sent && is != always || is && !always {
			w.Errorf("%s.%s: required %v, but it is always there: %v", path, name, is, always)
		}
		w.check(path+"."+name, file, property, f.Type)
	}
	for name := range properties {
		if !known[name] {
			w.Errorf("%s: the schema %s has %q, which does not exist", path, file, name)
		}
	}
}
