package manage

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// The names of fields are case-sensitive, as in the OpenAPI document.
func init() { huma.ValidateStrictCasing = true }

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
