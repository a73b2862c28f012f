package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/kafkatest"
)

func withRegistry(url string) Config {
	return Config{SchemaRegistry: SchemaRegistry{URL: url, User: "vokter", Password: registry.NewSecret("secret")}}
}

// TestRegisterSchemas: every public schema is registered with those that it refers to, and keeps its ID.
func TestRegisterSchemas(t *testing.T) {
	fake := srfake.New(srfake.WithAuth("Basic dm9rdGVyOnNlY3JldA=="))
	defer fake.Close()
	ids, err := withRegistry(fake.URL()).RegisterSchemas(t.Context(), flow.PublicTypes)
	if err != nil || len(ids) != len(flow.PublicTypes) {
		t.Fatalf("got %v, %v", ids, err)
	}
	again, err := withRegistry(fake.URL()).RegisterSchemas(t.Context(), []string{flow.TypeNotification})
	if err != nil || again[flow.TypeNotification] != ids[flow.TypeNotification] {
		t.Errorf("the next time: got %v, %v", again, err)
	}
	seen := make(map[int]string)
	for typ, id := range ids {
		if other := seen[id]; other != "" || id == 0 {
			t.Errorf("%s has the ID %d, as %q has", typ, id, other)
		}
		seen[id] = typ
	}
	s, ok := fake.GetSchema(flow.TypeAddressed, 1)
	if !ok || len(s.References) != 3 {
		t.Errorf("the schema of %s: %v %+v", flow.TypeAddressed, ok, s.References)
	}
	var schema struct {
		ID string `json:"$id"`
	}
	if err := json.Unmarshal([]byte(s.Schema.Schema), &schema); err != nil || schema.ID == "" {
		t.Errorf("it has the $id %q, %v", schema.ID, err)
	}
}

func TestRegistriesThatFail(t *testing.T) {
	for code, lasting := range map[int]bool{401: true, 403: true, 409: true, 422: true, 429: false, 500: false, 503: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error_code": 1, "message": "no"}`, code)
		}))
		_, err := withRegistry(srv.URL).RegisterSchemas(t.Context(), []string{flow.TypeEnded})
		srv.Close()
		if err == nil || errors.Is(err, ErrRegistry) != lasting {
			t.Errorf("%d: got %v, want it to last: %v", code, err, lasting)
		}
		if _, err = withRegistry(srv.URL).RegisterSchemas(t.Context(), []string{flow.TypeEnded}); err == nil || errors.Is(err, ErrRegistry) {
			t.Errorf("a registry that is down: got %v", err)
		}
	}
	if ids, err := (Config{}).RegisterSchemas(t.Context(), flow.PublicTypes); err != nil || ids != nil {
		t.Errorf("without a registry: got %v, %v", ids, err)
	}
}

func TestFrame(t *testing.T) {
	ids, body := SchemaIDs{"a": 258}, []byte(`{}`)
	framed := ids.Frame("a", body)
	if !bytes.Equal(framed, []byte{0, 0, 0, 1, 2, '{', '}'}) || !bytes.Equal(Unframe(framed), body) {
		t.Errorf("got %v", framed)
	}
	for _, b := range [][]byte{body, nil, {}, {0, 1}} {
		if got := ids.Frame("b", b); !bytes.Equal(got, b) || !bytes.Equal(Unframe(b), b) {
			t.Errorf("%v became %v", b, got)
		}
	}
	if got := ids.Frame("a", nil); got != nil {
		t.Errorf("a tombstone became %v", got)
	}
}

func TestSchemaRegistryMistakes(t *testing.T) {
	for _, tt := range []struct {
		of          SchemaRegistry
		field, says string
	}{
		{SchemaRegistry{}, "", ""},
		{SchemaRegistry{URL: "http://127.0.0.1:8081"}, "", ""},
		{SchemaRegistry{User: "u", Password: registry.NewSecret("p")}, "schema_registry.url", "is missing"},
		{SchemaRegistry{URL: "registry:8081"}, "schema_registry.url", "is not the address"},
		{SchemaRegistry{URL: "https://u:p@registry"}, "schema_registry.url", "user and password beside it"},
		{SchemaRegistry{URL: "https://registry", User: "u"}, "schema_registry.user", "needs a password"},
	} {
		kafkatest.Mistake(t, Config{Brokers: []string{"127.0.0.1:9092"}, SchemaRegistry: tt.of}.Validate(), tt.field, tt.says)
	}
}
