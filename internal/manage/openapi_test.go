package manage

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

// TestDocumentIsUpToDate compares the copy in docs with what a process serves.
func TestDocumentIsUpToDate(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "openapi.json")
	want, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, append(want, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(got), want) {
		t.Error("docs/openapi.json is not up to date: go test ./internal/manage -run TestDocumentIsUpToDate -update")
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

// operations returns all routes.
func operations(t *testing.T) map[string]*huma.Operation {
	t.Helper()
	all := make(map[string]*huma.Operation)
	for path, item := range newAPI(http.NewServeMux(), &fake{}, client.Process{}).OpenAPI().Paths {
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
		if got := ask(op.Method, "", strings.Repeat(" ", maxBody+1), aToken); got != 413 {
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
