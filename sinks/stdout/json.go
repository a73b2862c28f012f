package stdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// encodeJSON returns the documented body in one line.
func encodeJSON(n pipeline.Notification) ([]byte, error) {
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	return EncodeJSON(n)
}

// EncodeJSON returns v in one line. Characters that could steer a terminal are escaped, which
// no reader of JSON can tell from themselves.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := b.Bytes()
	out := make([]byte, 0, len(line))
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if r != '\n' && render.Steers(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		} else {
			out = append(out, line[:size]...)
		}
		line = line[size:]
	}
	return out, nil
}
