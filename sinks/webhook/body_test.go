package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

// TestV1 holds the body to the very bytes of the first server.
func TestV1(t *testing.T) {
	n := sample()
	timeout := pipeline.Notification{Status: pipeline.StatusTimeout, URL: "https://example.com/", ID: "T"}
	for _, tt := range []struct {
		n    pipeline.Notification
		want string
	}{
		{n, `{"status":"ok","url":"https://example.com/","diffs":[` +
			`{"action":"inserted","keyword":"argus","snippet":"In the 5th century and later, Argus' wakeful alertness ..."},` +
			`{"action":"deleted","keyword":"zeus","snippet":"... Zeus sent \"Hermes\" & others ..."}]}`},
		{timeout, `{"status":"timeout","url":"https://example.com/","diffs":[]}`},
	} {
		got := catchRequest(t, sample().Time, tt.n, Config{Format: FormatV1, Secret: registry.NewSecret("secret")})
		if string(got.body) != tt.want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s\nwant %s", got.header.Get("Content-Type"), got.body, tt.want)
		}
	}
}

// TestCloudEvents has the SDK of CloudEvents read what is sent.
func TestCloudEvents(t *testing.T) {
	hostile := sample()
	hostile.URL = "https://example.com/ä b?\"q\"=100%\r\n\x00\uFFFE\u2028€😀"
	hostile.Title = hostile.URL
	health := pipeline.Notification{Status: "offline", ID: "H", Type: pipeline.NotificationTypeHealth, Time: sample().Time, Health: &pipeline.Health{Event: pipeline.HealthOffline}}
	for name, n := range map[string]pipeline.Notification{"sample": sample(), "hostile": hostile, "health": health} {
		for mode, encoding := range map[string]binding.Encoding{ModeStructured: binding.EncodingStructured, ModeBinary: binding.EncodingBinary} {
			got := catchRequest(t, time.Now(), n, Config{Format: FormatCloudEvents, Mode: mode, Secret: registry.NewSecret("secret")})
			m := cehttp.NewMessage(got.header, io.NopCloser(strings.NewReader(string(got.body))))
			if m.ReadEncoding() != encoding {
				t.Errorf("%s, %s: read as %v", name, mode, m.ReadEncoding())
			}
			e, err := binding.ToEvent(context.Background(), m)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, mode, err)
			}
			if err := e.Validate(); err != nil {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
			// The JavaScript SDK takes a charset that is written in capitals for another type.
			if want := map[string]string{ModeStructured: "application/cloudevents+json", ModeBinary: mediaJSON}[mode]; got.header.Get("Content-Type") != want {
				t.Errorf("%s, %s: content type %q, want %q", name, mode, got.header.Get("Content-Type"), want)
			}
			subject := e.Subject()
			if mode == ModeBinary {
				subject = decodeHeader(t, got.header.Get("ce-subject"))
			}
			if e.ID() != n.ID || e.Type() != flow.TypeNotification || e.DataSchema() == "" || e.Source() != flow.SourceVokter || !e.Time().Equal(n.Time) || e.DataContentType() != mediaJSON {
				t.Errorf("%s, %s: got %v", name, mode, e)
			}
			if want := strings.NewReplacer("\r\n\x00\uFFFE", "").Replace(n.URL); subject != want {
				t.Errorf("%s, %s: subject %q, want %q", name, mode, subject, want)
			}
			var data pipeline.Notification
			if err := json.Unmarshal(e.Data(), &data); err != nil || data.ID != n.ID || data.URL != n.URL || len(data.Diffs) != len(n.Diffs) || data.Diffs == nil {
				t.Errorf("%s, %s: data %s, %v", name, mode, e.Data(), err)
			}
			if err := verifySignature(t, "secret", got); err != nil {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
			checkAttributes(t, got.header)
		}
	}
}

// decodeHeader is the inverse of percentEncode.
func decodeHeader(t *testing.T, s string) string {
	t.Helper()
	u, err := url.PathUnescape(s)
	if err != nil {
		t.Errorf("%q: %v", s, err)
	}
	return u
}

// checkAttributes looks for what the SDK does not mind.
func checkAttributes(t *testing.T, h http.Header) {
	t.Helper()
	for name, values := range h {
		attribute, ok := strings.CutPrefix(strings.ToLower(name), "ce-")
		if !ok {
			continue
		}
		if attribute == "data" || attribute == "datacontenttype" || len(attribute) > 20 || strings.Trim(attribute, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("there is an attribute %q", attribute)
		}
		if len(values) != 1 || values[0] == "" || strings.ContainsFunc(values[0], func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			t.Errorf("%s is %q", name, values)
		}
	}
}

func TestPercentEncode(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com/": "https://example.com/", "a b": "a%20b", `"%`: "%22%25", "Euro € 😀": "Euro%20%E2%82%AC%20%F0%9F%98%80", "~!": "~!",
	} {
		if got := percentEncode(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestBinaryHasTheDocumentedBody compares the two.
func TestBinaryHasTheDocumentedBody(t *testing.T) {
	a := catchRequest(t, sample().Time, sample(), Config{})
	b := catchRequest(t, sample().Time, sample(), Config{Format: FormatCloudEvents, Mode: ModeBinary})
	if !reflect.DeepEqual(a.body, b.body) {
		t.Errorf("got %s\nwant %s", b.body, a.body)
	}
}

func TestLongSubjectIsLeftOut(t *testing.T) {
	n := sample()
	n.URL = "https://example.com/" + strings.Repeat("x", maxAttribute)
	got := catchRequest(t, n.Time, n, Config{Format: FormatCloudEvents, Mode: ModeBinary})
	if got.header.Get("ce-subject") != "" || !strings.Contains(string(got.body), n.URL) {
		t.Errorf("got %v", got.header)
	}
}
