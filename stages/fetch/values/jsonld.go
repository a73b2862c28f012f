package values

import (
	"encoding/json"
	"errors"
	"html"
	"io"
	"strings"

	jsonreader "github.com/vokter/vokter/stages/fetch/readers/json"
)

// decodeJSONLD returns the values in a script of JSON-LD: usually one. What shops write beside it is passed over, see
// jsonreader.Clean. With an error it returns the values before it.
func decodeJSONLD(s string) ([]any, error) {
	values, err := decodeAll(s)
	if err == nil {
		return values, nil
	}
	lenient, err := decodeAll(jsonreader.Clean(s))
	if err != nil && strings.HasPrefix(strings.TrimSpace(s), "{&quot;") {
		return decodeAll(jsonreader.Clean(html.UnescapeString(s)))
	}
	return lenient, err
}

// decodeAll decodes the JSON values of s, which follow each other.
func decodeAll(s string) (values []any, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return values, err
		}
		values = append(values, v)
	}
}
