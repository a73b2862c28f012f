package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// Formats of the body.
const (
	FormatDocumented  = "documented"
	FormatV1          = "v1"
	FormatCloudEvents = "cloudevents"
)

// Modes of FormatCloudEvents.
const (
	ModeStructured = "structured"
	ModeBinary     = "binary"
)

const (
	mediaJSON       = "application/json"
	mediaCloudEvent = "application/cloudevents+json"
)

// encode returns the body of n, and the headers that belong to it.
func (w *Webhook) encode(ctx context.Context, n pipeline.Notification) ([]byte, http.Header, error) {
	if !w.body.IsZero() {
		text, err := w.body.Render(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		return []byte(text), http.Header{"Content-Type": {w.contentType}}, nil
	}
	if n.Diffs == nil {
		n.Diffs = []pipeline.Diff{}
	}
	h := http.Header{"Content-Type": {mediaJSON}}
	if w.format == FormatCloudEvents {
		return encodeCloudEvent(n, w.mode, h)
	}
	if n.Type == pipeline.NotificationTypeChange {
		return n.Record, h, nil
	}
	if w.format == FormatV1 {
		b, err := encodeV1(n)
		return b, h, err
	}
	b, err := encodeJSON(n)
	return b, h, err
}

func encodeJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	return b, nil
}

// The body that the first server sent.
type (
	v1Body struct {
		Status string   `json:"status"`
		URL    string   `json:"url"`
		Diffs  []v1Diff `json:"diffs"`
	}
	v1Diff struct {
		Action  string `json:"action"`
		Keyword string `json:"keyword"`
		Snippet string `json:"snippet"`
	}
)

// v1Actions are the events as the first server called them.
var v1Actions = map[pipeline.Event]string{pipeline.Added: "inserted", pipeline.Removed: "deleted"}

// encodeV1 returns the body that the first server sent, without escapes for HTML.
func encodeV1(n pipeline.Notification) ([]byte, error) {
	body := v1Body{n.Status, n.URL, make([]v1Diff, len(n.Diffs))}
	for i, d := range n.Diffs {
		body.Diffs[i] = v1Diff{v1Actions[d.Event], d.Keyword, d.Snippet}
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(body); err != nil {
		return nil, failure.Permanent(fmt.Errorf("encoding the notification: %w", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// maxAttribute bounds an attribute in a header, in bytes: servers refuse headers of some
// kilobytes. Only the subject, which is optional and is also in the data, can be longer.
const maxAttribute = 4 << 10

// encodeCloudEvent returns n as a CloudEvent.
func encodeCloudEvent(n pipeline.Notification, mode string, h http.Header) ([]byte, http.Header, error) {
	m, err := flow.CloudEvent(n)
	if err != nil {
		return nil, nil, err
	}
	attributes := make(map[string]string)
	for name, value := range m.Attributes() {
		if name, ok := strings.CutPrefix(name, "ce_"); ok {
			attributes[name] = value
		}
	}
	if mode == ModeBinary {
		for name, value := range attributes {
			if encoded := percentEncode(value); len(encoded) <= maxAttribute {
				h.Set("ce-"+name, encoded)
			}
		}
		return m.Body, h, nil
	}
	h.Set("Content-Type", mediaCloudEvent)
	attributes["datacontenttype"] = mediaJSON
	b, err := encodeJSON(attributes)
	if err != nil {
		return nil, nil, err
	}
	// The data is already encoded and is appended to the attributes.
	b = append(b[:len(b)-1], `,"data":`...)
	b = append(b, m.Body...)
	return append(b, '}'), h, nil
}

// percentEncode encodes the value of an attribute for a header, as the HTTP binding of
// CloudEvents prescribes: blanks, quotes, per cent signs and all that is not visible ASCII.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
