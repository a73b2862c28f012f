package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/vokter/vokter/pipeline/flow"
)

// internal are the types that only this module's own stages read: they change as they like.
var internal = []string{
	flow.TypeRequest, flow.TypeApply, flow.TypeExpire, flow.TypeOutcome, flow.TypePushed, flow.TypeFollow, flow.TypeLinks,
	flow.TypeRetry, flow.TypeSnapshot, flow.TypeCompare, flow.TypeStamp, flow.TypeDecision, flow.TypeSweep, flow.TypeTold, flow.TypeWake,
}

// constants returns the string constants of a file below pipeline whose names begin with
// prefix, by name.
func constants(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../pipeline", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range s.Names {
			if !strings.HasPrefix(name.Name, prefix) || i >= len(s.Values) {
				continue
			}
			if lit, ok := s.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if all[name.Name], err = strconv.Unquote(lit.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
		return true
	})
	if len(all) == 0 {
		t.Fatalf("%s has no constants %s...", file, prefix)
	}
	return all
}

// document is docs/asyncapi.yaml.
type document struct {
	*testing.T
	root map[string]any
}

func newDocument(t *testing.T) document {
	t.Helper()
	b, err := os.ReadFile("../../docs/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := document{T: t}
	if err := yaml.UnmarshalWithOptions(b, &d.root, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return d
}

// object is the object at a path in the document, its $ref followed.
func (d document) object(path ...string) map[string]any {
	d.Helper()
	at := d.root
	for _, step := range path {
		next, ok := at[step].(map[string]any)
		if !ok {
			d.Fatalf("no %s in %s", step, strings.Join(path, "/"))
		}
		at = next
	}
	if ref, ok := at["$ref"].(string); ok {
		local, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			d.Fatalf("%s: %q is not in the document", strings.Join(path, "/"), ref)
		}
		return d.object(strings.Split(local, "/")...)
	}
	return at
}

func TestAsyncAPINamesThePublicTopics(t *testing.T) {
	d := newDocument(t)
	if d.root["asyncapi"] != "3.0.0" {
		t.Errorf("asyncapi: %v", d.root["asyncapi"])
	}
	topics, types := constants(t, "flow/topics.go", "Topic"), constants(t, "flow/topics.go", "Type")
	described := make(map[string]bool)
	for name, channel := range d.object("channels") {
		c := channel.(map[string]any)
		address := fmt.Sprint(c["address"])
		if !slices.ContainsFunc(values(topics), func(topic string) bool { return topic == address }) || name != address {
			t.Errorf("channel %s: the address %q is no topic", name, address)
		}
		kafka := d.object("channels", name, "bindings", "kafka")
		if kafka["topic"] != "vokter."+address {
			t.Errorf("channel %s: the topic is %v, want it with the prefix that is the default", name, kafka["topic"])
		}
		if fmt.Sprint(kafka["partitions"]) != "64" {
			t.Errorf("channel %s: %v partitions, want the 64 that are the default", name, kafka["partitions"])
		}
		if c["description"] == nil {
			t.Errorf("channel %s: no description", name)
		}
		for message := range d.object("channels", name, "messages") {
			m := d.object("channels", name, "messages", message)
			typ := fmt.Sprint(m["name"])
			if !slices.Contains(values(types), typ) || slices.Contains(internal, typ) {
				t.Errorf("message %s: %q is no public type", message, typ)
			}
			described[typ] = true
			d.message(message, typ, m)
		}
	}
	for name, typ := range types {
		if described[typ] == slices.Contains(internal, typ) {
			t.Errorf("%s: described %v, though that it is internal is %v", name, described[typ], !described[typ])
		}
	}
	for name, operation := range d.object("operations") {
		o := operation.(map[string]any)
		channel := d.object("operations", name, "channel")
		if o["action"] != "send" && o["action"] != "receive" {
			t.Errorf("operation %s: action %v", name, o["action"])
		}
		for _, m := range o["messages"].([]any) {
			ref := fmt.Sprint(m.(map[string]any)["$ref"])
			if !strings.HasPrefix(ref, "#/channels/"+fmt.Sprint(channel["address"])+"/messages/") {
				t.Errorf("operation %s: %s is not of its channel", name, ref)
			}
			d.object(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
}

// message checks what a message says of its headers, body and key.
func (d document) message(name, typ string, m map[string]any) {
	d.Helper()
	at := func(part string) string {
		s, ok := m[part].(map[string]any)
		if !ok {
			return ""
		}
		if s["schemaFormat"] != "application/schema+json;version=draft-2020-12" {
			d.Errorf("message %s: the format of %s is %v", name, part, s["schemaFormat"])
		}
		ref := fmt.Sprint(s["schema"].(map[string]any)["$ref"])
		file, ok := strings.CutPrefix(ref, "schemas/")
		if !ok {
			d.Fatalf("message %s: %s at %q", name, part, ref)
		}
		compile(d.T, file)
		return file
	}
	headers := "headers.json"
	switch {
	case commands[typ]:
		headers = "command-headers.json"
	case typ == flow.TypePage:
		headers = "page-headers.json"
	}
	if got := at("headers"); got != headers {
		d.Errorf("message %s: headers %q, want %q", name, got, headers)
	}
	want := ""
	if bodies[typ] != nil {
		want = typ + ".json"
	}
	if got := at("payload"); got != want {
		d.Errorf("message %s: payload %q, want %q", name, got, want)
	}
	if (m["contentType"] == "application/json") != (want != "") {
		d.Errorf("message %s: content type %v", name, m["contentType"])
	}
	bindings, _ := m["bindings"].(map[string]any)
	kafka, _ := bindings["kafka"].(map[string]any)
	key, _ := kafka["key"].(map[string]any)
	if key["type"] != "string" || key["description"] == nil {
		d.Errorf("message %s: key %v", name, key)
	}
}

func values(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// TestEveryFileIsUsed: what lies in docs/schemas is part of a public format.
func TestEveryFileIsUsed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schemaDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range append(files, "../../docs/asyncapi.yaml") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if !strings.Contains(all.String(), "/"+name) && !strings.Contains(all.String(), `"$ref": "`+name) {
			t.Errorf("%s is referred to by nothing", name)
		}
		compile(t, name)
	}
}

func TestHealthEventsAreDescribed(t *testing.T) {
	event := object(t, filepath.Join(schemaDir, flow.TypeHealth+".json"))["properties"].(map[string]any)["event"].(map[string]any)
	for name, e := range constants(t, "notification.go", "Health") {
		if name == "HealthKey" {
			continue
		}
		if !slices.Contains(event["examples"].([]any), any(e)) || !strings.Contains(event["description"].(string), e) {
			t.Errorf("%s (%q) is not described in the schema", name, e)
		}
	}
}
