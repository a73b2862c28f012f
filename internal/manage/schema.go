package manage

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// OpenAPI returns the description of the API as a document in JSON.
func OpenAPI() ([]byte, error) {
	return newAPI(http.NewServeMux(), nil, client.Process{}).document()
}

func (a *api) document() ([]byte, error) { return json.MarshalIndent(a.OpenAPI(), "", "  ") }

// schemaName names the schema of a type. Types of different packages have the same name.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	switch t {
	case reflect.TypeFor[inspect.Subscription](), reflect.TypeFor[inspect.Receiver]():
		return "Listed" + name
	case reflect.TypeFor[flow.Change]():
		return "ChangeRecord"
	case reflect.TypeFor[flow.Difference]():
		return "ChangeDifference"
	case reflect.TypeFor[client.Subscription]():
		return "PageSubscription"
	case reflect.TypeFor[huma.ErrorModel]():
		return "Problem"
	case reflect.TypeFor[huma.ErrorDetail]():
		return "ProblemField"
	}
	return name
}

// minChange is the schema of pipeline.MinChange.
type minChange struct{}

// Schema implements huma.SchemaProvider.
func (minChange) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: `A number of tokens, or a share of the text such as "5%".`,
		OneOf: []*huma.Schema{
			{Type: huma.TypeInteger, Minimum: number(0)},
			{Type: huma.TypeString, Pattern: `^[0-9]{1,9}$|^[0-9]{1,2}([.][0-9]{1,2})?%$`},
		},
	}
}

// duration is the schema of pipeline.Duration.
type duration struct{}

// Schema implements huma.SchemaProvider.
func (duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A duration such as 30s, 10m or 24h, or never.",
		Type:        huma.TypeString, Pattern: `^(never|([0-9]{1,5}(h|m|s|ms))+)$`, Examples: []any{"10m0s"},
	}
}

func number(n float64) *float64 { return &n }
