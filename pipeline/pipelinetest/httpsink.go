package pipelinetest

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
)

// HTTPSinkOptions are the options with which to make a sink under test.
type HTTPSinkOptions struct {
	// Allow lists networks that it may connect to besides public addresses.
	Allow []netip.Prefix
	// RootCAs are the certificate authorities to trust. Nil means those of the system.
	RootCAs *x509.CertPool
	// Secret is the secret with which it signs or authenticates, if it does.
	Secret string
}

// NewHTTPSink makes a sink that sends to rawURL.
type NewHTTPSink func(t *testing.T, rawURL string, o HTTPSinkOptions) pipeline.Sink

// HTTPSinkFeatures are the promises of a sink beyond the interface. Tests of other promises are
// skipped.
type HTTPSinkFeatures struct {
	// Accept answers like a receiver that accepted the notification. Nil answers 204.
	Accept http.HandlerFunc
	// Imposters answer 200, but not as the protocol demands, so that the notification is not
	// delivered. Leave it empty for protocols in which the status decides.
	Imposters []http.HandlerFunc
	// Class returns the class of an answer other than 2xx. Nil means HTTPStatusClass.
	Class func(status int) failure.Class
	// Decode decodes a request of the sink: the notification's ID, empty if the protocol has no
	// place for it, and the texts of its diffs. It is required.
	Decode func(h http.Header, body []byte) (id string, texts []string, err error)
	// ForPeople says that texts arrive in a form for people: without control characters, and
	// with "…" or "..." where they are cut.
	ForPeople bool
}

// HTTPStatusClass returns the class of an answer, unless the protocol says more.
func HTTPStatusClass(status int) failure.Class {
	switch status {
	case 400, 413, 414, 415, 422:
		return failure.ClassRefused
	case 410:
		return failure.ClassGone
	case 429:
		return failure.ClassLimited
	}
	return failure.ClassRetry
}

// Secrets that a sink must not reveal.
const (
	pathSecret  = "T0pSecretPath"
	querySecret = "Qu3rySecret"
	userSecret  = "Us3rSecret"
	keySecret   = "whsec_" + "S2V5U2VjcmV0S2V5U2VjcmV0S2V5U2VjcmV0"
)

var secrets = []string{pathSecret, querySecret, userSecret, keySecret, keySecret[6:]}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// httpSuite is what all the tests of a sink share.
type httpSuite struct {
	HTTPSinkFeatures
	newSink NewHTTPSink
}

// TestHTTPSink tests that a sink over HTTP keeps the contract of pipeline.Sink: what counts as
// delivered, the class of each failure, limits of every read and wait, no redirects, no secrets
// in errors, and page text that arrives as data. It measures the memory and the goroutines of the
// process, so no test may run beside it.
func TestHTTPSink(t *testing.T, f HTTPSinkFeatures, newSink NewHTTPSink) {
	if f.Accept == nil {
		f.Accept = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	}
	if f.Class == nil {
		f.Class = HTTPStatusClass
	}
	s := &httpSuite{f, newSink}
	t.Run("Delivers", s.testDelivers)
	t.Run("Imposters", s.testImposters)
	t.Run("Redirects", s.testRedirects)
	t.Run("Statuses", s.testStatuses)
	t.Run("RetryAfter", s.testRetryAfter)
	t.Run("BoundedAnswers", s.testBoundedAnswers)
	t.Run("EndlessSuccess", s.testEndlessSuccess)
	t.Run("Resets", s.testResets)
	t.Run("KeptAliveConnectionDies", s.testKeptAliveDies)
	t.Run("NoConnection", s.testNoConnection)
	t.Run("Certificates", s.testCertificates)
	t.Run("Addresses", s.testAddresses)
	t.Run("CancelWithinTheAnswer", s.testCancel)
	t.Run("ManyFaults", s.testManyFaults)
	(&sinkSuite{newFake: s.newFake, largestText: 1 << 20}).runAll(t)
}

// sinkFor makes the sink that sends to a server, with secrets in every part of its URL.
func (s *httpSuite) sinkFor(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/hook/" + pathSecret
	u.RawQuery = "token=" + querySecret
	u.User = url.UserPassword("bot", userSecret)
	return s.newSink(t, u.String(), HTTPSinkOptions{Allow: loopback, Secret: keySecret})
}

// deliverTo delivers to a server with the handler answer, and returns the error.
func (s *httpSuite) deliverTo(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	return deliver(t.Context(), t, s.sinkFor(t, startServer(t, answer)), newNotification("a"))
}

func startServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// newNotification returns a notification with some text.
func newNotification(id string, texts ...string) pipeline.Notification {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/", ID: id, Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default", Diffs: []pipeline.Diff{},
	}
	for _, text := range texts {
		n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: "argus", Text: text, Snippet: text})
	}
	return n
}

// deliver fails the test if the error holds a secret, or is long.
func deliver(ctx context.Context, t *testing.T, sink pipeline.Sink, n pipeline.Notification) error {
	t.Helper()
	err := SinkFake{Sink: sink, Secrets: secrets}.deliver(ctx, t, n)
	if err != nil && len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	return err
}

// wantClass fails the test unless err has the class.
func wantClass(t *testing.T, err error, want failure.Class) {
	t.Helper()
	if err == nil {
		t.Error("delivered, want a failure")
		return
	}
	if got, _ := failure.ClassOf(err); got != want {
		t.Errorf("class %d, want %d: %v", got, want, err)
	}
}

func (s *httpSuite) testDelivers(t *testing.T) {
	if err := s.deliverTo(t, s.Accept); err != nil {
		t.Errorf("got %v, want delivered", err)
	}
	if len(s.Imposters) > 0 {
		return
	}
	for _, status := range []int{200, 201, 202, 204} {
		err := s.deliverTo(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if err != nil {
			t.Errorf("status %d: got %v, want delivered", status, err)
		}
	}
}

func (s *httpSuite) testImposters(t *testing.T) {
	if len(s.Imposters) == 0 {
		t.Skip("the protocol defines no answer beyond the status")
	}
	for i, h := range s.Imposters {
		if err := s.deliverTo(t, h); err == nil {
			t.Errorf("imposter %d: delivered, want a failure", i)
		}
	}
}

func (s *httpSuite) testRedirects(t *testing.T) {
	followed := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the second server was asked: %s", r.Method)
		s.Accept(w, r)
	})
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		for _, location := range []string{followed + "/?" + querySecret, "/again", ":", ""} {
			seen := 0
			err := s.deliverTo(t, func(w http.ResponseWriter, _ *http.Request) {
				seen++
				w.Header().Set("Location", location)
				w.WriteHeader(status)
			})
			wantClass(t, err, failure.ClassRetry)
			if seen != 1 {
				t.Errorf("%d to %q: %d requests, want 1", status, location, seen)
			}
		}
	}
}

func (s *httpSuite) testStatuses(t *testing.T) {
	all := []int{400, 401, 403, 404, 405, 408, 409, 410, 413, 414, 415, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 599}
	for _, status := range all {
		err := s.deliverTo(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, r.URL, keySecret)
		})
		if err == nil {
			t.Errorf("status %d: delivered, want a failure", status)
			continue
		}
		wantClass(t, err, s.Class(status))
		if refused := status == 401 || status == 403; refused != failure.TellsAtOnce(err) {
			t.Errorf("status %d: told at once: %v, want %v, since somebody has to mend the token", status, !refused, refused)
		}
		if !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("status %d is not in the error %q", status, err)
		}
	}
}

func (s *httpSuite) testRetryAfter(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC()
	for _, tt := range []struct {
		value    string
		min, max time.Duration
	}{
		{"", 0, time.Minute},
		{"120", 2 * time.Minute, 2 * time.Minute},
		{" 120 ", 2 * time.Minute, 2 * time.Minute},
		{soon.Format(http.TimeFormat), 30 * time.Minute, time.Hour},
		{soon.Format("Monday, 02-Jan-06 15:04:05 GMT"), 30 * time.Minute, time.Hour},
		{"Fri, 02 Jan 2015 15:04:05 GMT", 0, time.Second},
		{"315360000", time.Hour, 24 * time.Hour},
		{"-5", 0, time.Minute},
		{"1e3", 0, time.Minute},
		{"99999999999999999999999", 0, 24 * time.Hour},
		{"tomorrow", 0, time.Minute},
	} {
		for _, status := range []int{429, 503} {
			err := s.deliverTo(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.value)
				w.WriteHeader(status)
			})
			wantClass(t, err, s.Class(status))
			if _, after := failure.ClassOf(err); after < tt.min || after > tt.max {
				t.Errorf("%d with Retry-After %q: wait %v, want between %v and %v", status, tt.value, after, tt.min, tt.max)
			}
		}
	}
}

func (s *httpSuite) testAddresses(t *testing.T) {
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a forbidden address was asked for %s", r.Host)
		s.Accept(w, r)
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	port := u.Port()
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]",
		"10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]",
	} {
		sink := s.newSink(t, "http://"+host+":"+port+"/", HTTPSinkOptions{Secret: keySecret})
		err := deliver(t.Context(), t, sink, newNotification("a"))
		if got, _ := failure.ClassOf(err); err == nil || got != failure.ClassPermanent {
			t.Errorf("%s: class %d of %v, want permanent", host, got, err)
		}
	}
}

func (s *httpSuite) testCancel(t *testing.T) {
	for name, tt := range map[string]struct {
		header string
		cause  error
	}{
		"with a cause":                 {"", errors.New("a cause")},
		"within the header":            {"HTTP/1.1 200 OK\r\nContent-", nil},
		"within the body of a failure": {"HTTP/1.1 500 Bad\r\nContent-Length: 10\r\n\r\nabc", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			hold := startRawServer(t, func(c *rawConn) {
				c.readRequest()
				c.write(tt.header)
				cancel(tt.cause)
				c.waitForClose() // until the sink went away
			})
			err := deliver(ctx, t, s.sinkFor(t, hold.url), newNotification("a"))
			if strings.Contains(tt.header, "500") && err != nil && strings.Contains(err.Error(), "500") {
				return // the status came before the end
			}
			wantCanceled(t, err)
		})
	}
}

func wantCanceled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	wantClass(t, err, failure.ClassCanceled)
}
