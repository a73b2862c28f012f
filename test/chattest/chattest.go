// Package chattest holds what the tests of the sinks for chat programs share.
package chattest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Updating reports whether golden files are to be written.
func Updating() bool { return *update }

// Loopback is the network of the tests.
var Loopback = netip.MustParsePrefix("127.0.0.0/8")

// Local reaches the servers of tests.
var Local = registry.Connection{Allow: []netip.Prefix{Loopback}}

// Notification returns a notification with some text, and some that is hostile.
func Notification() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://user:pass@shop.example/item_(1)?a=b&c=*d*", ID: "0123456789ABCDEFGHIJKLMNOP", Type: pipeline.NotificationType,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default", Version: 7, Title: "Zeus & Co [*sale*]", Truncated: true, Omitted: 7,
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "out of stock", Text: "Out", Snippet: "Zeus, 3.5 kg at 10:30: $5 to $6. Out of stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "stock", Text: "Out", Snippet: "Zeus, 3.5 kg at 10:30: $5 to $6. Out of stock.", Offset: 6},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "(In stock at Zeus)", Snippet: "Now 😀 (In stock at Zeus) and shops", Offset: 70},
			{Event: pipeline.Added, Keyword: "boom", Text: "# <!channel> @channel @here <@U1> *x* _y_ ~~z~~ `q` ||s|| :boom: #tag /cmd ~town", Offset: 90,
				Snippet: "# <!channel> @channel @here <@U1> *x* _y_ ~~z~~ `q` ||s|| :boom: #tag /cmd ~town"},
			{Event: pipeline.Added, Keyword: "bank", Text: "1. [bank](http://evil.example) <http://evil.example|bank> www.evil.example evil.example/x me@evil.example {{DATE(1)}} ${x} $y$ %41 &amp;", Offset: 99,
				Snippet: "1. [bank](http://evil.example) <http://evil.example|bank> www.evil.example evil.example/x me@evil.example {{DATE(1)}} ${x} $y$ %41 &amp;"},
		},
	}
}

// Samples returns notifications of each sort, by name.
func Samples() map[string]pipeline.Notification {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return map[string]pipeline.Notification{
		"changes": Notification(),
		"timeout": {
			Status: pipeline.StatusTimeout, URL: "https://shop.example/", ID: "T", Type: pipeline.NotificationType, Time: at, Client: "default",
			Reason: "looking up shop.example: no such host",
		},
		"recovered": {
			Status: pipeline.StatusRecovered, URL: "https://shop.example/", ID: "R", Type: pipeline.NotificationType, Time: at, Client: "default",
			Since: at.Add(-130 * time.Minute), Reason: "it answers again after 2h10m; 13 checks in a row had failed",
		},
		"health": {
			Status: string(pipeline.HealthOffline), ID: "H", Type: pipeline.NotificationTypeHealth, Time: at, Health: &pipeline.Health{
				ID: "H", Event: pipeline.HealthOffline, Time: at, Count: 3, Since: at, URLs: []string{"https://a.example/x_y", "https://b.example/"},
			},
		},
	}
}

// Long returns a notification with many long differences, of emoji and of what formats.
func Long() pipeline.Notification {
	n := Notification()
	n.Title = strings.Repeat("<*😀", 200)
	n.Diffs = nil
	for i := range 60 {
		text := strconv.Itoa(i) + strings.Repeat("@*_<😀&[ word ", 200)
		n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Removed, Keyword: "word", Text: text, Snippet: "a" + text, Offset: i})
	}
	return n
}

// Caught is a request that a receiver got.
type Caught struct {
	Method, URI string
	Body        []byte
}

// Receiver is a server that keeps the requests it gets, and answers them in turn as
// answers say, the last of them again and again.
type Receiver struct {
	URL     string
	Answers []http.HandlerFunc
	Got     []Caught
}

// NewReceiver starts a Receiver for one client at a time. It ends with the test.
func NewReceiver(t *testing.T, answers ...http.HandlerFunc) *Receiver {
	t.Helper()
	r := &Receiver{Answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		if got := req.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type is %q", got)
		}
		r.Got = append(r.Got, Caught{req.Method, req.RequestURI, body})
		r.Answers[min(len(r.Got), len(r.Answers))-1](w, req)
	}))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Answer answers with a status and a body.
func Answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Build returns the sink that build makes of c, a Config with a registry.Connection, which is
// how, and otherwise reaches the servers of tests.
func Build[C any, S pipeline.Sink](t *testing.T, build func(C) (S, error), c C, how ...registry.Connection) S {
	t.Helper()
	connection := append(how, Local)[0]
	reflect.ValueOf(&c).Elem().FieldByName("Connection").Set(reflect.ValueOf(connection))
	s, err := build(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Send delivers n with the sink of newSink to a receiver that accepts it, and returns the request and what that receiver
// reads of its body, which is JSON.
func Send[M any](t *testing.T, accept http.HandlerFunc, newSink func(t *testing.T, rawURL string) pipeline.Sink, n pipeline.Notification) (Caught, M) {
	t.Helper()
	r := NewReceiver(t, accept)
	if err := newSink(t, r.URL).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return r.Got[0], Decode[M](t, r.Got[0].Body)
}

// Decode returns what a receiver reads of body, which is JSON.
func Decode[M any](t *testing.T, body []byte) (m M) {
	t.Helper()
	if err := json.Unmarshal(body, &m); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	return m
}

// Golden compares body, which is JSON, with testdata/NAME.golden.json, where it is
// indented.
func Golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatalf("%s: %v in %s", name, err, body)
	}
	b.WriteByte('\n')
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, b.Bytes(), want)
	}
}

// Verdict is what an answer means.
type Verdict struct {
	status int
	body   string
	class  failure.Class
	says   string
	wait   time.Duration
	// ambiguous says that the receiver may have the notification all the same.
	ambiguous bool
	// atOnce says that the failure is told at once.
	atOnce bool
}

// Means says that an answer of this status and body gives an error of this class, which
// says that, after which to wait for at least so long.
func Means(status int, body string, class failure.Class, says string, wait time.Duration) Verdict {
	return Verdict{status, body, class, says, wait, false, false}
}

// Refuses is what an answer of this status and body means with which the receiver refuses us,
// until somebody mends that: a failure that is told at once.
func Refuses(status int, body, says string) Verdict {
	return Verdict{status, body, failure.ClassRetry, says, 0, false, true}
}

// Without is what an answer of this status 2xx and this body means, which lacks what says
// that the receiver has the notification.
func Without(status int, body, says string) Verdict {
	return Verdict{status, body, failure.ClassRetry, says, 0, true, false}
}

// Verdicts delivers to receivers that answer as each of list says.
func Verdicts(t *testing.T, newSink func(t *testing.T, rawURL string) pipeline.Sink, list ...Verdict) {
	t.Helper()
	for _, v := range list {
		r := NewReceiver(t, Answer(v.status, v.body))
		err := newSink(t, r.URL).Deliver(t.Context(), Notification())
		class, wait := failure.ClassOf(err)
		if err == nil || class != v.class || wait != v.wait || !strings.Contains(err.Error(), v.says) ||
			failure.IsAmbiguous(err) != v.ambiguous || failure.TellsAtOnce(err) != v.atOnce {
			t.Errorf("%d %s: got class %d, wait %v, ambiguous %v, told at once %v: %v; want class %d, wait %v, ambiguous %v, told at once %v, %q",
				v.status, v.body, class, wait, failure.IsAmbiguous(err), failure.TellsAtOnce(err), err, v.class, v.wait, v.ambiguous, v.atOnce, v.says)
		}
	}
}

// BreaksOff delivers to a receiver whose answer is accept but for its last bytes: it may have
// the notification.
func BreaksOff(t *testing.T, accept http.HandlerFunc, newSink func(t *testing.T, rawURL string) pipeline.Sink) {
	t.Helper()
	r := NewReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		whole := httptest.NewRecorder()
		accept(whole, req)
		body := whole.Body.Bytes()
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(whole.Code)
		_, _ = w.Write(body[:len(body)/2])
	})
	err := newSink(t, r.URL).Deliver(t.Context(), Notification())
	if !failure.IsAmbiguous(err) || !strings.Contains(err.Error(), "the answer broke off: ") {
		t.Errorf("got %v, ambiguous %v, want an ambiguous error that says that the answer broke off", err, failure.IsAmbiguous(err))
	}
}

// Attempt keeps why a delivery was degraded.
type Attempt struct {
	pipeline.Attempt
	Reasons []string
}

// Degraded keeps reason.
func (a *Attempt) Degraded(reason string) { a.Reasons = append(a.Reasons, reason) }

// GivesWay delivers to a receiver that refuses the first request and accepts the second,
// and returns both bodies. It fails the test unless the second is shorter, and the
// attempt was told.
func GivesWay(t *testing.T, refuse, accept http.HandlerFunc, newSink func(t *testing.T, rawURL string) pipeline.Sink) (rich, plain []byte) {
	t.Helper()
	r := NewReceiver(t, refuse, accept)
	a := &Attempt{}
	if err := newSink(t, r.URL).Deliver(pipeline.WithAttempt(t.Context(), a), Long()); err != nil {
		t.Fatal(err)
	}
	if len(r.Got) != 2 || len(r.Got[1].Body) >= len(r.Got[0].Body) || len(a.Reasons) != 1 {
		t.Fatalf("%d requests, told %q", len(r.Got), a.Reasons)
	}
	return r.Got[0].Body, r.Got[1].Body
}

// Refused checks that a sink which is built with a bad configuration says so of field
// alone, without the secret.
func Refused(t *testing.T, err error, field, secret string) {
	t.Helper()
	fe, ok := errors.AsType[*pipeline.FieldError](err)
	if !ok || fe.Field != field || secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want an error of %s", err, field)
	}
}
