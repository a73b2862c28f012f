package manage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// The names of fields are case-sensitive, as in the OpenAPI document.
func init() { huma.ValidateStrictCasing = true }

// jsonFormat is JSON as the API reads and writes it.
var jsonFormat = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalJSON}

// unmarshalJSON is json.Unmarshal with other errors about numbers: those of json.Unmarshal name Go types.
func unmarshalJSON(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || !strings.HasPrefix(wrong.Value, "number ") {
		return err
	}
	where := "the"
	if wrong.Field != "" {
		where = wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] + ": the" // before it may be the name of a Go type
	}
	if wrong.Type.Kind() == reflect.Float64 {
		return fmt.Errorf("%s %.40s is too large", where, wrong.Value)
	}
	return fmt.Errorf("%s %.40s is too large, or not written as a whole number", where, wrong.Value)
}

// maxEchoedValue is how much of a wrong value is repeated to the client, in bytes.
const maxEchoedValue = 200

// dropLongValues is a huma.Transformer. It takes the values out of a problem that are longer than maxEchoedValue.
func dropLongValues(_ huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*huma.ErrorModel); ok {
		for _, e := range p.Errors {
			if remainingRoom(e.Value, maxEchoedValue) < 0 {
				e.Value = nil
			}
		}
	}
	return v, nil
}

// remainingRoom returns about how much of room is left beside the JSON value v, in bytes, and less than 0 if v is
// longer.
func remainingRoom(v any, room int) int {
	switch v := v.(type) {
	case string:
		room -= len(v)
	case []any:
		for i := 0; i < len(v) && room >= 0; i++ {
			room = remainingRoom(v[i], room)
		}
	case map[string]any:
		for name, field := range v {
			if room = remainingRoom(field, room-len(name)); room < 0 {
				break
			}
		}
	}
	return room - 2 // its quotes, brackets or digits
}

// repeatedField returns the name of a field that an object in the JSON value b has twice, or an empty
// string. What is no JSON has none: the handler of the route refuses it.
func repeatedField(b []byte) string {
	type level struct {
		names map[string]bool // nil in a list
		value bool            // the next token is a value, not a name
	}
	var levels []level
	for in := json.NewDecoder(bytes.NewReader(b)); ; {
		t, err := in.Token()
		if err != nil {
			return ""
		}
		var top *level
		if len(levels) > 0 {
			top = &levels[len(levels)-1]
		}
		switch d, _ := t.(json.Delim); {
		case d == '}' || d == ']':
			levels = levels[:len(levels)-1]
			continue
		case top != nil && top.names != nil && !top.value:
			name := fmt.Sprint(t)
			if top.names[name] {
				return name
			}
			top.names[name], top.value = true, true
			continue
		case top != nil:
			top.value = false
		}
		switch t {
		case json.Delim('{'):
			levels = append(levels, level{names: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
