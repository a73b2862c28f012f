package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
	"github.com/vokter/vokter/test/chattest"
)

// secrets are the variables that the pages name.
var secrets = map[string]string{
	"PAGERDUTY_KEY": strings.Repeat("0123abcd", 4), "OPSGENIE_KEY": "0123abcd-key", "PUSHOVER_TOKEN": strings.Repeat("a1", 15),
	"PUSHOVER_USER": strings.Repeat("b2", 15), "ZULIP_KEY": "0123abcd", "WEBEX_TOKEN": "0123abcd", "WEBEX_ROOM": "Y2lzY29zcGFyazovL3Vz",
	"SIGNAL_NUMBER": "+15550100", "SIGNAL_RECIPIENT": "+15550101", "HASS_TOKEN": "0123abcd",
	"GOOGLE_CHAT_URL": "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=0123abcd&token=0123abcd",
}

// pageBlocks matches the configuration and the body on a page.
var pageBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```.*```(?:json|text)\n(.*?)```")

// request is what a receiver got.
type request struct {
	host, contentType, auth string
	body                    []byte
}

// provider answers as one does that wants a body of its own kind.
type provider struct {
	*httptest.Server
	status int
	got    []request
}

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		p.got = append(p.got, request{r.Header.Get("X-To"), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body})
		w.WriteHeader(p.status)
	}))
	t.Cleanup(p.Close)
	return p
}

// RoundTrip brings a request for whatever host to p.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-To", r.URL.Host)
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = u.Scheme, u.Host
	return http.DefaultTransport.RoundTrip(r)
}

// TestPages runs the configuration of each page about a receiver with a body of its own kind,
// and compares what arrives with what its documentation demands, and with the page.
func TestPages(t *testing.T) {
	schemas, err := filepath.Glob("testdata/bodies/*.schema.json")
	if err != nil || len(schemas) < 9 {
		t.Fatalf("%d schemas, %v", len(schemas), err)
	}
	for _, schema := range schemas {
		name := strings.TrimSuffix(filepath.Base(schema), ".schema.json")
		t.Run(name, func(t *testing.T) { testPage(t, name, schema) })
	}
}

func testPage(t *testing.T, name, schema string) {
	file := filepath.Join("..", "..", "docs", "sinks", name+".md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := pageBlocks.FindSubmatchIndex(page)
	if parts == nil {
		t.Fatal("the page has no configuration, or no body")
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	shape, err := compiler.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}

	to := newProvider(t)
	var made webhook.Config
	sink, host := newSinkFrom(t, name, page[parts[2]:parts[3]], to, &made)
	for what, n := range samples() {
		to.status, to.got = made.SuccessStatus[0], nil
		if err := sink.Deliver(t.Context(), n); err != nil || len(to.got) != 1 {
			t.Fatalf("%s: %d requests, %v", what, len(to.got), err)
		}
		got := to.got[0]
		if got.host != host || strings.Contains(name, "opsgenie") && got.auth != "GenieKey 0123abcd-key" {
			t.Errorf("%s: sent to %s, signed in with %q", what, got.host, got.auth)
		}
		body, err := decodeBody(got)
		if err != nil {
			t.Fatalf("%s: %v in %s", what, err, got.body)
		}
		if err := shape.Validate(body); err != nil {
			t.Errorf("%s: %v\n%s", what, err, got.body)
		}
		if what == "changes" {
			comparePage(t, file, page, parts[4], parts[5], formatBody(t, got))
		}
		// What the receiver does not call a success is none.
		to.status = http.StatusAccepted
		if slices.Contains(made.SuccessStatus, to.status) {
			to.status = http.StatusNoContent
		}
		if err := sink.Deliver(t.Context(), n); err == nil {
			t.Errorf("%s: answered %d, and taken for delivered", what, to.status)
		}
	}
}

// newSinkFrom returns the sink of a configuration, which reaches to, and the host that it names.
func newSinkFrom(t *testing.T, name string, text []byte, to *provider, made *webhook.Config) (s pipeline.Sink, host string) {
	t.Helper()
	var kinds registry.Registry
	registry.AddSink(&kinds, "webhook", func(c webhook.Config, _ registry.Env) (*webhook.Webhook, error) {
		c.Client = &http.Client{Transport: to}
		*made = c
		return webhook.New(c)
	})
	c, err := config.Parse(name+".yaml", text, config.Options{
		Registry: &kinds, LookupEnv: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Router.Sinks) != 1 || len(made.SuccessStatus) == 0 || len(c.Router.Subscriptions) != 1 {
		t.Fatalf("%d sinks, %d subscriptions, success_status %v", len(c.Router.Sinks), len(c.Router.Subscriptions), made.SuccessStatus)
	}
	u, err := url.Parse(made.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return c.Router.Sinks[c.Router.Subscriptions[0].Sinks[0]], u.Host
}

// samples are notifications of each sort, a hostile one and a long one among them.
func samples() map[string]pipeline.Notification {
	all := chattest.Samples()
	all["long"] = chattest.Long()
	digest := chattest.Notification()
	digest.Type = pipeline.NotificationTypeDigest
	digest.Items = []pipeline.Item{{ID: "A", Time: digest.Time, Title: digest.Title, Diffs: len(digest.Diffs)}}
	all["digest"] = digest
	return all
}

// decodeBody returns the body of a request as JSON, or the values of a form.
func decodeBody(r request) (any, error) {
	if r.contentType != "application/x-www-form-urlencoded" {
		if r.contentType != "application/json" {
			return nil, fmt.Errorf("the content type is %q", r.contentType)
		}
		return jsonschema.UnmarshalJSON(bytes.NewReader(r.body))
	}
	values, err := url.ParseQuery(string(r.body))
	fields := make(map[string]any)
	for k, v := range values {
		fields[k] = strings.Join(v, " and ")
	}
	return fields, err
}

// formatBody returns the body of a request as a page shows it.
func formatBody(t *testing.T, r request) []byte {
	t.Helper()
	if r.contentType != "application/json" {
		return append(r.body, '\n')
	}
	var b bytes.Buffer
	if err := json.Indent(&b, r.body, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// comparePage compares what stands in a page from begin to end.
func comparePage(t *testing.T, file string, page []byte, begin, end int, want []byte) {
	t.Helper()
	if chattest.Updating() {
		page = slices.Concat(page[:begin], want, page[end:])
		end = begin + len(want)
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := page[begin:end]; !bytes.Equal(got, want) {
		t.Errorf("the page shows\n%s\nsent is\n%s", got, want)
	}
}
