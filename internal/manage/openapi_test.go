package manage

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
)

var update = flag.Bool("update", false, "write the documents that are made of the code")

// TestDocumentIsUpToDate compares what docs has of the API and of the options of a subscription with the code.
func TestDocumentIsUpToDate(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	want, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := os.ReadFile(filepath.Join(docs, "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"openapi.json": string(want) + "\n", "schemas/subscription.json": subscriptionSchema(t, want), "configuration.md": withOptionTable(t, string(configuration)),
	} {
		path := filepath.Join(docs, name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("docs/%s is not up to date (%v): go test ./internal/manage -run TestDocumentIsUpToDate -update", name, err)
		}
	}
	_, base := serve(t, &fake{})
	status, header, served := send(t, "GET", base+client.Prefix+"/openapi.json", "", nil)
	if status != 200 || header.Get("Content-Type") != "application/json" || !bytes.Equal(served, want) {
		t.Errorf("served: %d %v, %d bytes, want %d", status, header, len(served), len(want))
	}
	var version struct{ OpenAPI string }
	if err := json.Unmarshal(served, &version); err != nil || !strings.HasPrefix(version.OpenAPI, "3.1.") {
		t.Errorf("got version %q, %v", version.OpenAPI, err)
	}
}

// withOptionTable returns a document whose table of the options of a subscription is that of their descriptions. It
// keeps what the table has besides.
func withOptionTable(t *testing.T, document string) string {
	t.Helper()
	before, rest, found := strings.Cut(document, "\n## Subscriptions\n")
	intro, rest, found2 := strings.Cut(rest, "|---|---|---|\n")
	rows, behind, found3 := strings.Cut(rest, "\n\n")
	if !found || !found2 || !found3 {
		t.Fatal("there is no table of subscriptions")
	}
	var table strings.Builder
	for _, o := range pipeline.Options() {
		if strings.Contains(o.Name, ".") {
			continue
		}
		byDefault := o.Default
		if byDefault == "" {
			byDefault = "false"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", o.Name, o.Markdown(false), byDefault)
	}
	for row := range strings.SplitSeq(rows, "\n") {
		if _, known := pipeline.OptionCalled(strings.Trim(strings.Split(row, "|")[1], " `")); !known {
			table.WriteString(row + "\n")
		}
	}
	return before + "\n## Subscriptions\n" + intro + "|---|---|---|\n" + table.String() + "\n" + behind
}

// subscriptionSchema returns the JSON schema of a subscription by itself. In contrast to that of the API it is open to
// further fields.
func subscriptionSchema(t *testing.T, openAPI []byte) string {
	t.Helper()
	var document struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	schemas := document.Components.Schemas
	s := schemas["Subscription"]
	var ofDocument []string
	for _, o := range pipeline.Options() {
		names := strings.Split(o.Name, ".")
		if o.OfDocument() && len(names) == 1 {
			ofDocument = append(ofDocument, o.Name)
		}
		in := s["properties"].(map[string]any)
		if len(names) > 1 {
			parent := in[names[0]].(map[string]any)
			if ref, ok := parent["$ref"].(string); ok {
				parent = schemas[path.Base(ref)]
			}
			in = parent["properties"].(map[string]any)
		}
		p := in[names[len(names)-1]].(map[string]any)
		values := []any{""}
		for _, v := range o.Values {
			values = append(values, v.Value)
		}
		switch {
		case o.Kind() == reflect.Slice && len(o.Values) > 0:
			p["items"] = map[string]any{"enum": values[1:]}
		case len(o.Values) > 0:
			p["enum"] = values
		case o.Kind() == reflect.Slice && o.Min > 0:
			p["type"], p["minItems"] = "array", o.Min
		case o.Max > 0 && o.Kind() == reflect.Int:
			p["minimum"], p["maximum"] = 0, o.Max // 0 stands for the default
		}
	}
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "Subscription"
	s["$id"] = "https://github.com/vokter/vokter/blob/main/docs/schemas/subscription.json"
	s["description"] = "What a client wants to be notified of in a document. A client has one subscription to a document; a document is a page with " +
		strings.Join(ofDocument, ", ") + "."
	s["$defs"] = map[string]any{"Follow": schemas["Follow"], "Value": schemas["Value"], "Selector": schemas["Selector"]}
	var open func(node any)
	open = func(node any) {
		switch n := node.(type) {
		case map[string]any:
			delete(n, "additionalProperties")
			if ref, ok := n["$ref"].(string); ok {
				n["$ref"] = strings.Replace("#/$defs/"+path.Base(ref), "#/$defs/Digest", "digest.json", 1)
			}
			for _, child := range n {
				open(child)
			}
		case []any:
			for _, child := range n {
				open(child)
			}
		}
	}
	open(s)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// operations returns all routes.
func operations(t *testing.T) map[string]*huma.Operation {
	t.Helper()
	all := make(map[string]*huma.Operation)
	for path, item := range newAPI(http.NewServeMux(), &fake{}, Options{}).OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete, item.Patch} {
			if op != nil {
				all[op.Method+" "+path] = op
			}
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d routes", len(all))
	}
	return all
}

// TestEveryRoute walks the route table: each route needs a token with its scope, and refuses other
// methods, unknown parameters and fields, and large bodies.
func TestEveryRoute(t *testing.T) {
	f := &fake{}
	tokens := []config.Token{{Name: "none", Hash: config.HashToken("NONE")}}
	scopes := []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}
	for _, s := range scopes {
		tokens = append(tokens, config.Token{Name: string(s), Hash: config.HashToken(string(s)), Scopes: []config.Scope{s}})
	}
	base := serveURL(t, newAPIOf(t, f, config.API{Tokens: tokens}))
	for name, op := range operations(t) {
		ask := func(method, query, body, token string) int {
			t.Helper()
			header := map[string]string{"Authorization": ""}
			if token != "" {
				header["Authorization"] = "Bearer " + token
			}
			status, got, b := send(t, method, base+op.Path+query, body, header)
			if status >= 400 && got.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %d %s is no problem", method, op.Path, status, b)
			}
			return status
		}
		needs := op.Security[0][bearer]
		if len(needs) != 1 || op.Summary == "" || op.OperationID == "" {
			t.Errorf("%s: it needs the scopes %v, and has the summary %q and the ID %q", name, needs, op.Summary, op.OperationID)
		}
		if got := ask(op.Method, "", "{}", ""); got != 401 {
			t.Errorf("%s without a token: got %d", name, got)
		}
		if got := ask(op.Method, "", "{}", "NONE"); got != 403 {
			t.Errorf("%s with a token without scopes: got %d", name, got)
		}
		for _, s := range scopes {
			if has := slices.Contains(needs, string(s)); !has {
				if got := ask(op.Method, "", "{}", string(s)); got != 403 {
					t.Errorf("%s with the scope %s: got %d", name, s, got)
				}
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			if _, ok := operations(t)[method+" "+op.Path]; !ok {
				if got := ask(method, "", "{}", aToken); got != 405 {
					t.Errorf("%s with %s: got %d", name, method, got)
				}
			}
		}
		large := maxBody
		if op.OperationID == "apply-subscriptions" {
			large = maxListBody
		}
		if got := ask(op.Method, "", strings.Repeat(" ", large+1), aToken); got != 413 {
			t.Errorf("%s with a large body: got %d", name, got)
		}
		if got := ask(op.Method, "?unheard=1", `{}`, aToken); got != 422 {
			t.Errorf("%s with an unknown parameter: got %d", name, got)
		}
		if op.RequestBody != nil {
			if got := ask(op.Method, "", `{"unheard":1}`, aToken); got != 422 {
				t.Errorf("%s with an unknown field: got %d", name, got)
			}
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("it was carried out: %v", f.asked)
	}
}
