// Package contract holds the tests of the public formats: the topics that other programs
// read and write, as docs/schemas and docs/asyncapi.yaml describe them.
package contract

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// schemaDir is where the schemas are.
const schemaDir = "../../docs/schemas"

// schemaID is what the $id of a schema begins with; the name of its file follows.
const schemaID = "https://github.com/vokter/vokter/blob/main/docs/schemas/"

// bodies says what the body of each public type with JSON is decoded into.
var bodies = map[string]any{
	flow.TypeChange:     flow.Change{},
	flow.TypeEnded:      flow.Ended{},
	flow.TypeCurrent:    flow.Current{},
	flow.TypeOutage:     flow.Outage{},
	flow.TypeAddressed:  flow.Addressed{},
	flow.TypeWithdraw:   flow.Withdraw{},
	flow.TypeHealth:     pipeline.Health{},
	flow.TypeDeadLetter: flow.DeadLetter{},
	flow.TypeReplay:     flow.ReplayCommand{},
	flow.TypeSubscribe:  flow.SubscribeCommand{},
	flow.TypeCancel:     flow.CancelCommand{},
	flow.TypePause:      flow.PauseCommand{},
	flow.TypeResume:     flow.ResumeCommand{},
}

// commands are the public types that other programs send too.
var commands = map[string]bool{
	flow.TypeReplay: true, flow.TypeSubscribe: true, flow.TypeCancel: true,
	flow.TypePause: true, flow.TypeResume: true, flow.TypeCheckNow: true,
}

// compile returns the schema in a file of schemaDir, with all that it refers to by its $id.
func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	files, err := filepath.Glob(filepath.Join(schemaDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := c.AddResource(schemaID+filepath.Base(f), object(t, f)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile(schemaID + file)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

// schemas compiles those of bodies, by type.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	all := make(map[string]*jsonschema.Schema)
	for typ := range bodies {
		all[typ] = compile(t, typ+".json")
	}
	return all
}

// instance decodes JSON as the validator wants it.
func instance(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// object reads a JSON object from a file.
func object(t *testing.T, path string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return o
}

// TestPublicTypesHaveSchemas: what a record names as its schema exists.
func TestPublicTypesHaveSchemas(t *testing.T) {
	want := append(slices.Collect(maps.Keys(bodies)), flow.TypeNotification)
	if got := slices.Sorted(slices.Values(flow.PublicTypes)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("public are %v, want %v", got, want)
	}
	for _, typ := range flow.PublicTypes {
		compile(t, typ+".json")
	}
}

func TestSchemasRefuseWhatIsWrong(t *testing.T) {
	all := schemas(t)
	for name, c := range map[string]struct{ typ, body string }{
		"a change without groups":       {flow.TypeChange, `{"id":"i","url":"u","page":"u","document":"d","incarnation":"i","version":2,"previous":1,"time":"2026-11-21T10:00:00Z"}`},
		"a time that is none":           {flow.TypeHealth, `{"id":"i","event":"failing","time":"yesterday"}`},
		"a receiver without a sink":     {flow.TypeWithdraw, `{"receiver":{},"subscription":"s","page":"p"}`},
		"diffs that are null":           {flow.TypeAddressed, `{"receiver":{"sink":"s"},"document":"","subscription":"","notification":{"status":"ok","url":"","diffs":null,"id":"i","type":"notification","time":"2026-11-21T10:00:00Z","client":""}}`},
		"a subscription to no keyword":  {flow.TypeSubscribe, `{"subscription":{"url":"https://example.com/","keywords":[],"sinks":["s"]}}`},
		"an interval in nanoseconds":    {flow.TypeSubscribe, `{"subscription":{"url":"https://example.com/","keywords":["k"],"sinks":["s"],"interval":600000000000}}`},
		"a cancel of no page":           {flow.TypeCancel, `{"client":"c"}`},
		"a dead letter without attempt": {flow.TypeDeadLetter, `{"reason":"r","time":"2026-11-21T10:00:00Z"}`},
	} {
		if err := all[c.typ].Validate(instance(t, []byte(c.body))); err == nil {
			t.Errorf("%s is valid", name)
		}
	}
}
