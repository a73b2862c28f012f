package manage

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// OpenAPI returns the description of the API as a document in JSON.
func OpenAPI() ([]byte, error) {
	return newAPI(http.NewServeMux(), nil, Options{}).openAPIDocument()
}

// openAPIDocument returns the description of the routes in JSON.
func (a *api) openAPIDocument() ([]byte, error) { return json.MarshalIndent(a.OpenAPI(), "", "  ") }

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

// minChangeSchema is the schema of pipeline.MinChange.
type minChangeSchema struct{}

// Schema implements huma.SchemaProvider.
func (minChangeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf: []*huma.Schema{
			{Type: huma.TypeInteger, Minimum: floatPointer(0)},
			{Type: huma.TypeString, Pattern: `^[0-9]{1,9}$|^[0-9]{1,2}([.][0-9]{1,2})?%$`},
		},
	}
}

// amountSchema is the schema of pipeline.Amount.
type amountSchema struct{}

// Schema implements huma.SchemaProvider.
func (amountSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf: []*huma.Schema{
			{Type: huma.TypeNumber},
			{Type: huma.TypeString, Pattern: `^-?[0-9]{1,30}([.][0-9]{1,30})?%?$`},
		},
	}
}

// durationSchema is the schema of pipeline.Duration.
type durationSchema struct{}

// Schema implements huma.SchemaProvider.
func (durationSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: "A duration such as 30s, 10m or 24h.",
		Type:        huma.TypeString, Pattern: "^" + durationPattern + "$", Examples: []any{"10m0s"},
		PatternDescription: "a duration such as 30s, 10m or 24h",
	}
}

const durationPattern = `([0-9]{1,5}([.][0-9]{1,9})?(h|ms|m|s|µs|ns))+`

// expireSchema is the schema of pipeline.Expire.
type expireSchema struct{}

// Schema implements huma.SchemaProvider.
func (expireSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"after": {
				OneOf: []*huma.Schema{{Type: huma.TypeInteger, Minimum: floatPointer(1)}, {Type: huma.TypeString, Enum: []any{"never"}}},
			},
			"retry": {
				Type: huma.TypeString, Pattern: "^(never|([0-9]{1,4}d)?(" + durationPattern + ")?)$", Examples: []any{"720h0m0s"},
				PatternDescription: "a duration such as 12h or 30d, or never",
			},
		},
	}
}

// intervalSchema is the schema of pipeline.Interval.
type intervalSchema struct{}

// Schema implements huma.SchemaProvider.
func (intervalSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Description: `A duration such as 10m; two such as "10m to 24h", the bounds of an interval that follows how often the page changes; ` +
			`a cron line (minute, hour, day of the month, month, day of the week) with the name of a time zone, UTC if there is none; or never.`,
		Type:               huma.TypeString,
		Pattern:            "^(never|" + durationPattern + "( to " + durationPattern + `)?|[0-9A-Za-z*,/#?-]+( [0-9A-Za-z*,/#?-]+){4}( [A-Za-z0-9_+/-]+)?)$`,
		PatternDescription: `a duration such as 10m, bounds such as "10m to 24h", a cron line such as "0 9 * * 1-5 Europe/Berlin", or "never"`,
		Examples:           []any{"10m0s", "10m0s to 24h0m0s", "0 9 * * 1-5 Europe/Berlin", "never"},
	}
}

// quietSchema is the schema of pipeline.Quiet.
type quietSchema struct{}

// Schema implements huma.SchemaProvider.
func (quietSchema) Schema(huma.Registry) *huma.Schema {
	const clock = `([01][0-9]|2[0-3]):[0-5][0-9]`
	return &huma.Schema{
		Description:        "Hours of each day: when they begin, when they end, and the name of their time zone, UTC if there is none.",
		Type:               huma.TypeString,
		Pattern:            "^" + clock + "-" + clock + `( [A-Za-z0-9_+/-]+)?$`,
		PatternDescription: `hours such as "22:00-07:00 Europe/Berlin"`,
		Examples:           []any{"22:00-07:00 Europe/Berlin"},
	}
}

// requireNonEmptyParameters says that parameters are not empty, as queryMistake demands.
func requireNonEmptyParameters(api *huma.OpenAPI) {
	one := 1
	for _, item := range api.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				if p.Schema.Type == huma.TypeString && p.Schema.Enum == nil && p.Schema.Format == "" {
					p.Schema.MinLength = &one
				}
			}
		}
	}
}

// allowNullFields lets the optional fields of the schema of T be null, which means the same as to leave
// them out.
func allowNullFields[T any](schemas huma.Registry) {
	s := schemas.SchemaFromRef(schemas.Schema(reflect.TypeFor[T](), true, "").Ref)
	for name, p := range s.Properties {
		if !slices.Contains(s.Required, name) && p.Ref == "" && len(p.OneOf) == 0 {
			p.Nullable = true
		}
	}
	s.PrecomputeMessages()
}

// describeOptions describes the fields of subscriptions by their options.
func describeOptions(schemas huma.Registry) {
	for _, t := range []reflect.Type{reflect.TypeFor[pipeline.Subscription](), reflect.TypeFor[inspect.Subscription]()} {
		for _, o := range pipeline.Options() {
			p := schemas.Schema(t, true, "")
			for name := range strings.SplitSeq(o.Name, ".") {
				if p.Ref != "" {
					p = schemas.SchemaFromRef(p.Ref)
				}
				p = p.Properties[name]
			}
			p.Description = o.Sentence()
		}
	}
}

func floatPointer(n float64) *float64 { return &n }
