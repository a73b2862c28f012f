package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/slackfake"
)

// testReceiver is a receiver of test messages.
type testReceiver struct {
	*httptest.Server
	bodies chan string
}

func newTestReceiver(t *testing.T, answer http.HandlerFunc) *testReceiver {
	r := &testReceiver{bodies: make(chan string, 10)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if req.Method != http.MethodGet { // it asks, and sends nothing
			r.bodies <- string(b)
		}
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// received are the bodies that came.
func (r *testReceiver) received() []string {
	var all []string
	for len(r.bodies) > 0 {
		all = append(all, <-r.bodies)
	}
	return all
}

const testSecret = "xoxb-1-2-S3CRETTOKEN"

// sinkFile is a configuration with a sink, whose address is that of r.
func sinkFile(t *testing.T, r *testReceiver, sink string) string {
	return file(t, "c.yaml", fmt.Sprintf("allow: {sinks: [%s]}\nsinks:\n  team: %s\n  out: {stdout: {}}\n", loopback, strings.ReplaceAll(sink, "URL", r.URL)))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func answering(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// TestSinkTest sends one marked message with each kind, and says what came of it.
func TestSinkTest(t *testing.T) {
	const hook, bot = `{webhook: {url: "URL/in?key=` + testSecret + `"}}`, `{slack: {token: ` + testSecret + `, channel: C1, api_url: "URL/api/"}}`
	for name, tt := range map[string]struct {
		sink   string
		answer http.HandlerFunc
		code   int
		want   string // in the one line
	}{
		"webhook":             {hook, status(204), 0, "team: delivered, answered 204 No Content ("},
		"as v1":               {`{webhook: {url: "URL/", format: v1, secret: ` + testSecret + `}}`, status(200), 0, "answered 200 OK"},
		"as an event":         {`{webhook: {url: "URL/", format: cloudevents, headers: {X-Key: ` + testSecret + `}}}`, status(202), 0, "answered 202 Accepted"},
		"a wrong token":       {`{webhook: {url: "URL/", bearer: ` + testSecret + `}}`, status(401), 1, "sink team: the token is refused: answered 401 Unauthorized; check its token, secret or password, and write the right one into the file; delivery tries again"},
		"a wrong address":     {hook, status(404), 1, "answered 404 Not Found; check its address"},
		"it is gone":          {hook, status(410), 1, "answered 410 Gone; check its address"},
		"a refused body":      {hook, status(422), 1, "answered 422 Unprocessable Entity; it does not take such a body"},
		"a busy receiver":     {hook, status(503), 1, "answered 503 Service Unavailable; delivery would try it again later"},
		"a broken connection": {hook, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1, "; look there whether it arrived all the same"},
		"one that repeats all": {hook, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254"+r.RequestURI)
			w.WriteHeader(http.StatusFound)
			fmt.Fprint(w, r.RequestURI, r.Header)
		}, 1, "answered 302 Found, to http://169.254.169.254; redirects are not followed; check its address"},
		"nobody there":        {`{webhook: {url: "http://127.0.0.1:1/"}}`, nil, 1, "connection refused; check its address, and whether it is up"},
		"slack":               {bot, answering(200, `{"ok":true,"ts":"1.2","channel":"C1"}`), 0, "team: delivered"},
		"slack, wrong token":  {bot, answering(200, `{"ok":false,"error":"invalid_auth"}`), 1, "sink team: the token is refused: answered invalid_auth; write the right token into the file; delivery tries again"},
		"slack, not invited":  {bot, answering(200, `{"ok":false,"error":"not_in_channel"}`), 1, "sink team: access is refused: answered not_in_channel: invite the bot to the channel; put that right in the file, or at the receiver; delivery tries again"},
		"slack webhook":       {`{slack: {webhook_url: "URL/services/` + testSecret + `"}}`, answering(200, "ok"), 0, "team: delivered, answered 200 OK"},
		"slack, wrong one":    {`{slack: {webhook_url: "URL/services/` + testSecret + `"}}`, answering(404, "no_service"), 1, "answered 404 Not Found: no_service"},
		"slack, another site": {`{slack: {webhook_url: "URL/services/` + testSecret + `"}}`, answering(200, "<html>"), 1, "sink team: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestReceiver(t, tt.answer)
			path := sinkFile(t, r, tt.sink)
			got := runCLI(t, "sink", "test", "team", "-c", path)
			line := got.stdout + got.stderr
			if got.code != tt.code || !strings.Contains(line, tt.want) || strings.Count(line, "\n") != 1 || (got.stdout == "") != (tt.code == 1) {
				t.Errorf("got %+v, want %d and %s", got, tt.code, tt.want)
			}
			bodies := r.received()
			if tt.answer != nil && (len(bodies) != 1 || !isMarkedAsTest(bodies[0])) {
				t.Errorf("the receiver got %q, want one message that is marked", bodies)
			}
			asJSON := runCLI(t, "sink", "test", "team", "-c", path, "--format", "json")
			var l sinkTestLine
			if err := json.Unmarshal([]byte(asJSON.stdout), &l); err != nil || l.Sink != "team" || l.Delivered != (tt.code == 0) || asJSON.code != tt.code {
				t.Errorf("got %+v, %v", asJSON, err)
			}
			if strings.Contains(line+asJSON.stdout+asJSON.stderr, testSecret) {
				t.Errorf("the secret is shown: %s%+v", line, asJSON)
			}
		})
	}
}

func TestSinkTestOfSeveral(t *testing.T) {
	r := newTestReceiver(t, status(500))
	path := sinkFile(t, r, `{webhook: {url: "URL/"}}`)
	got := runCLI(t, "sink", "test", "--all", "-c", path)
	if got.code != 1 || !strings.Contains(got.stdout, `"type":"test"`) || !strings.Contains(got.stdout, "out: delivered (") || got.stderr != "vokter-stream: sink team: answered 500 Internal Server Error; delivery would try it again later\n" {
		t.Errorf("got %+v", got)
	}
	if n := len(r.received()); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	none := file(t, "none.yaml", "subscriptions: []\n")
	for args, want := range map[string]string{
		"test -c " + path:            path + " has out, team: name some, or write --all",
		"test tean -c " + path:       `no sink is named "tean"; did you mean "team"?`,
		"test out tean -c " + path:   `no sink is named "tean"`,
		"test --all out -c " + path:  "--all tests every sink; name none",
		"test --all -c " + none:      none + " has no sinks",
		"test out":                   "no configuration is given",
		"":                           "write vokter-stream sink test NAME -c FILE",
		"tset":                       `unknown verb "tset"; did you mean "test"?`,
		"test out -c none-here.yaml": "none-here.yaml does not exist",
	} {
		got := runCLI(t, append([]string{"sink"}, strings.Fields(args)...)...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: got %+v, want %s", args, got, want)
		}
	}
	if n := len(r.received()); n != 0 {
		t.Errorf("%d messages after mistakes", n)
	}
}

// TestSinkTestOfForbiddenAddress names the flag that permits it.
func TestSinkTestOfForbiddenAddress(t *testing.T) {
	r := newTestReceiver(t, status(204))
	path := file(t, "c.yaml", fmt.Sprintf("sinks: {team: {webhook: {url: %q}}}\n", r.URL))
	if got := runCLI(t, "sink", "test", "team", "-c", path); got.code != 1 || !strings.Contains(got.stderr, "--allow 127.0.0.1/32") {
		t.Errorf("got %+v", got)
	}
	if got := runCLI(t, "sink", "test", "team", "-c", path, "--allow", "127.0.0.1/32"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestSinkTestOfACertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(status(204))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
	server.StartTLS()
	t.Cleanup(server.Close)
	path := file(t, "c.yaml", fmt.Sprintf("sinks: {team: {webhook: {url: %q}}}\n", server.URL))
	if got := runCLI(t, "sink", "test", "team", "-c", path, "--allow", loopback); got.code != 1 || !strings.Contains(got.stderr, "; the certificate of the receiver has to be put right") {
		t.Errorf("got %+v", got)
	}
}

func TestInterruptedSinkTest(t *testing.T) {
	r := newTestReceiver(t, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	s := start(t, "sink", "test", "team", "-c", sinkFile(t, r, `{webhook: {url: "URL/"}}`))
	<-r.bodies
	s.stop()
	if code := <-s.ended; code != 1 || s.err.String() != "vokter-stream: sink team: interrupted; it may have arrived all the same\n" {
		t.Errorf("code %d, %s", code, &s.err)
	}
}

// closable counts how often it is closed.
type closable struct {
	pipeline.SinkFunc
	closed *int
}

func (c closable) Close() error { *c.closed++; return nil }

// TestTestedSinksAreClosed: also one whose rate the file sets.
func TestTestedSinksAreClosed(t *testing.T) {
	n := 0
	closeSinks(map[string]pipeline.Sink{"plain": closable{closed: &n}, "rated": registry.LimitRate(closable{closed: &n}, 1, 1)})
	if n != 2 {
		t.Errorf("%d were closed, want 2", n)
	}
}

// TestSinkTestOfSlack sends a test message as the bot, and with a token that was revoked.
func TestSinkTestOfSlack(t *testing.T) {
	fake := slackfake.Start(t, nil)
	run := func(token string) result {
		return runCLI(t, "sink", "test", "team", "--allow", loopback, "-c",
			file(t, "c.yaml", fmt.Sprintf("sinks: {team: {slack: {token: %s, channel: C1, api_url: %q}}}\n", token, fake.API())))
	}
	if r := run(slackfake.Token); r.code != 0 || len(fake.Messages()) != 1 || fake.Messages()[0].Blocks == nil {
		t.Errorf("got %+v and %+v", r, fake.Messages())
	}
	r := run("xoxb-S3CRETS3CRET")
	if r.code != 1 || !strings.Contains(r.stderr, "invalid_auth") || strings.Contains(r.stderr+r.stdout, "S3CRET") || len(fake.Messages()) != 1 {
		t.Errorf("got %+v", r)
	}
	fake.Script("C1", slackfake.Answer{Status: http.StatusOK, Body: "{}"})
	if r := run(slackfake.Token); r.code != 1 || !strings.Contains(r.stderr, "without the ts of a message") {
		t.Errorf("got %+v", r)
	}
}
