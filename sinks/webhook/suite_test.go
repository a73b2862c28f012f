package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// decodeFunc reads what was sent in a format: the ID in the body, if it has one, and the texts.
type decodeFunc func(body []byte) (id string, texts []string, err error)

func decodeDocumented(body []byte) (string, []string, error) {
	var n pipeline.Notification
	err := json.Unmarshal(body, &n)
	var texts []string
	for _, d := range n.Diffs {
		texts = append(texts, d.Text)
	}
	return n.ID, texts, err
}

func decodeV1(body []byte) (string, []string, error) {
	var b struct{ Diffs []struct{ Snippet string } }
	err := json.Unmarshal(body, &b)
	var texts []string
	for _, d := range b.Diffs {
		texts = append(texts, d.Snippet)
	}
	return "", texts, err
}

func decodeStructured(body []byte) (string, []string, error) {
	var e struct {
		ID   string
		Data json.RawMessage
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return "", nil, err
	}
	id, texts, err := decodeDocumented(e.Data)
	if id != e.ID {
		err = fmt.Errorf("the event is %q, its data %q", e.ID, id)
	}
	return id, texts, err
}

func TestConformance(t *testing.T) {
	for name, tt := range map[string]struct {
		decode decodeFunc
		c      webhook.Config
	}{
		"documented": {decodeDocumented, webhook.Config{}},
		"v1":         {decodeV1, webhook.Config{Format: webhook.FormatV1, Headers: map[string]registry.Secret{"X-Api-Key": registry.NewSecret("an API key")}}},
		"structured": {decodeStructured, webhook.Config{Format: webhook.FormatCloudEvents}},
		"binary":     {decodeDocumented, webhook.Config{Format: webhook.FormatCloudEvents, Mode: webhook.ModeBinary}},
	} {
		t.Run(name, func(t *testing.T) {
			f := pipelinetest.HTTPSinkFeatures{
				Decode: func(h http.Header, body []byte) (string, []string, error) {
					id, texts, err := tt.decode(body)
					header := h.Get(standardwebhooks.HeaderWebhookID)
					if id != "" && id != header {
						t.Errorf("%s is %q, the body says %q", standardwebhooks.HeaderWebhookID, header, id)
					}
					return header, texts, err
				},
			}
			pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
				c := tt.c
				c.URL, c.Secret, c.Allow, c.RootCAs = registry.NewSecret(rawURL), registry.NewSecret(o.Secret), o.Allow, o.RootCAs
				w, err := webhook.New(c)
				if err != nil {
					t.Fatal(err)
				}
				return w
			})
		})
	}
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// newChangingPage starts a server with a page that changes with every check.
func newChangingPage(t *testing.T) string {
	var checks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, []string{"<p>sold", "<p>in stock"}[checks.Add(1)%2])
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// watchPage runs a Router that watches a page, with w as its sink "hook" and another for health
// events, until done returns. It returns the receiver of hook as it is listed then.
func watchPage(t *testing.T, pageURL, dir string, w *webhook.Webhook, health chan<- pipeline.Health, done func()) inspect.Receiver {
	t.Helper()
	every := time.Millisecond
	r, err := vokter.New(vokter.Config{
		Dir: dir, MinFree: 1, Every: &every, Fetch: vokter.FetchConfig{Allow: []netip.Prefix{loopback}, Rate: 1000},
		Delivery: vokter.DeliveryConfig{Retry: []time.Duration{time.Millisecond}}, Drain: time.Millisecond,
		Sinks: map[string]pipeline.Sink{"hook": w, "ops": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			health <- *n.Health
			return nil
		})},
		Health:        []string{"ops"},
		Subscriptions: []pipeline.Subscription{{URL: pageURL, Keywords: []string{"stock", "sold"}, Sinks: []string{"hook"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	done()
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Error(err)
	}
	cancel()
	<-ended // what is pending is lost with the memory
	for _, rc := range l.Receivers {
		if rc.Sink == "hook" {
			return rc
		}
	}
	t.Fatalf("there is no such receiver: %+v", l)
	return inspect.Receiver{}
}

// TestRedirectToMetadataService is redirected to where clouds keep credentials.
func TestRedirectToMetadataService(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data?token=S3CRET", http.StatusFound))
	defer server.Close()
	health := make(chan pipeline.Health, 10)
	var told pipeline.Health
	rc := watchPage(t, newChangingPage(t), "", newWebhook(t, server.URL, webhook.Config{}), health, func() { told = <-health })
	const want = "answered 302 Found, to http://169.254.169.254; redirects are not followed"
	if rc.State != inspect.StateFailing || rc.Reason != want || rc.Pending == 0 {
		t.Errorf("got %+v, want it failing: %s", rc, want)
	}
	if told.Event != pipeline.HealthReceiverFailing || told.Reason != want || told.Count != 3 {
		t.Errorf("told %+v", told)
	}
}

// TestCertificateErrorIsReportedAtOnce has a receiver with a certificate of an unknown
// authority.
func TestCertificateErrorIsReportedAtOnce(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
	server.StartTLS()
	defer server.Close()
	health := make(chan pipeline.Health, 10)
	var told pipeline.Health
	watchPage(t, newChangingPage(t), "", newWebhook(t, server.URL, webhook.Config{}), health, func() { told = <-health })
	if told.Event != pipeline.HealthReceiverFailing || told.Count != 1 || !strings.Contains(told.Reason, "certificate") {
		t.Errorf("told %+v, want the first failure", told)
	}
}

// TestSignatureThroughDelivery has the module of the standard verify what arrives while a
// secret is replaced.
func TestSignatureThroughDelivery(t *testing.T) {
	const newSecret, oldSecret = "whsec_bmV3IHNlY3JldCBvZiAyNCBjaGFyYWN0ZXJz", "whsec_b2xkIHNlY3JldCBvZiAyNCBjaGFyYWN0ZXJz"
	arrived := make(chan error, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, secret := range []string{newSecret, oldSecret} {
			v, verr := standardwebhooks.NewWebhook(secret)
			if verr != nil {
				t.Error(verr)
				return
			}
			if verr := v.Verify(body, r.Header); err == nil {
				err = verr
			}
			changed := strings.Replace(string(body), "default", "defaulT", 1)
			if v.Verify([]byte(changed), r.Header) == nil {
				t.Error("a changed byte is verified")
			}
		}
		w.WriteHeader(http.StatusNoContent)
		select {
		case arrived <- err:
		default: // one is enough
		}
	}))
	defer server.Close()
	w := newWebhook(t, server.URL, webhook.Config{Secret: registry.NewSecret(newSecret), OldSecret: registry.NewSecret(oldSecret)})
	var err error
	watchPage(t, newChangingPage(t), "", w, make(chan pipeline.Health, 10), func() { err = <-arrived })
	if err != nil {
		t.Error(err)
	}
}

// TestProofOutlivesTheProcess has a receiver prove itself once, and the Router start twice.
func TestProofOutlivesTheProcess(t *testing.T) {
	arrived := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Type, Challenge string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, body.Challenge)
		select {
		case arrived <- body.Type:
		default: // there is enough
		}
	}))
	defer server.Close()
	dir, url := t.TempDir(), newChangingPage(t)
	run := func(first string) {
		t.Helper()
		w := newWebhook(t, server.URL, webhook.Config{Verify: true})
		watchPage(t, url, dir, w, make(chan pipeline.Health, 10), func() {
			// The second notification is sent once it is stored what became of the first.
			for _, want := range []string{first, "notification", "notification"} {
				if got := <-arrived; got != want {
					t.Errorf("got a %s, want a %s", got, want)
				}
			}
		})
		for len(arrived) > 0 {
			<-arrived
		}
	}
	run("verification")
	run("notification")
}

// newWebhook returns the webhook of c to a server on this machine.
func newWebhook(t *testing.T, rawURL string, c webhook.Config) *webhook.Webhook {
	t.Helper()
	c.URL, c.Allow = registry.NewSecret(rawURL), []netip.Prefix{loopback}
	w, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
