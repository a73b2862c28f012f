// Package contract holds the tests of the public formats: the topics that other programs
// read and write, as docs/schemas and docs/asyncapi.yaml describe them.
package contract

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vokter/vokter/pipeline"
)

// schemaDir is where the schemas are.
const schemaDir = "../../docs/schemas"

// bodies says what the body of each public type with JSON is decoded into.
var bodies = map[string]any{
	pipeline.TypeChange:       pipeline.Change{},
	pipeline.TypeEnded:        pipeline.Ended{},
	pipeline.TypeNotification: pipeline.Addressed{},
	pipeline.TypeWithdraw:     pipeline.Withdraw{},
	pipeline.TypeHealth:       pipeline.Health{},
	pipeline.TypeDeadLetter:   pipeline.DeadLetter{},
	pipeline.TypeReplay:       pipeline.ReplayCommand{},
	pipeline.TypeSubscribe:    pipeline.SubscribeCommand{},
	pipeline.TypeCancel:       pipeline.CancelCommand{},
	pipeline.TypeResume:       pipeline.ResumeCommand{},
}

// commands are the public types that other programs send too.
var commands = map[string]bool{
	pipeline.TypeReplay: true, pipeline.TypeSubscribe: true, pipeline.TypeCancel: true,
	pipeline.TypeResume: true, pipeline.TypeCheckNow: true,
}

// compile returns the schema in a file of schemaDir.
func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	path, err := filepath.Abs(filepath.Join(schemaDir, file))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(path)
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

func TestSchemasRefuseWhatIsWrong(t *testing.T) {
	all := schemas(t)
	for name, c := range map[string]struct{ typ, body string }{
		"a change without groups":       {pipeline.TypeChange, `{"id":"i","url":"u","page":"u","document":"d","incarnation":"i","version":2,"previous":1,"time":"2026-11-21T10:00:00Z","stamp":1}`},
		"a time that is none":           {pipeline.TypeHealth, `{"id":"i","event":"failing","time":"yesterday"}`},
		"a receiver without a sink":     {pipeline.TypeWithdraw, `{"receiver":{},"subscription":"s","page":"p"}`},
		"diffs that are null":           {pipeline.TypeNotification, `{"receiver":{"sink":"s"},"document":"","subscription":"","notification":{"status":"ok","url":"","diffs":null,"id":"i","type":"notification","timestamp":"2026-11-21T10:00:00Z","client":""}}`},
		"a subscription to no keyword":  {pipeline.TypeSubscribe, `{"subscription":{"url":"https://example.com/","keywords":[],"sinks":["s"]}}`},
		"an interval in nanoseconds":    {pipeline.TypeSubscribe, `{"subscription":{"url":"https://example.com/","keywords":["k"],"sinks":["s"],"interval":600000000000}}`},
		"a cancel of no page":           {pipeline.TypeCancel, `{"client":"c"}`},
		"a dead letter without attempt": {pipeline.TypeDeadLetter, `{"reason":"r","time":"2026-11-21T10:00:00Z"}`},
	} {
		if err := all[c.typ].Validate(instance(t, []byte(c.body))); err == nil {
			t.Errorf("%s is valid", name)
		}
	}
}
