package cli

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/vokter/vokter/test/kafkatest"
)

// testedKind is how a kind of sink that talks HTTP is tested.
type testedKind struct {
	kind, config string
	taken        string // what it answers if all is well, with status
	status       int
	refused      string // what it answers to a wrong token, with wrong
	wrong        int
}

var testedKinds = []testedKind{
	{"discord", `{webhook_url: "URL/api/webhooks/1/TOKEN"}`, `{"id":"1180000000000000000"}`, 200, `{"message":"Invalid Webhook Token","code":50027}`, 401},
	{"gotify", `{url: "URL", token: "TOKEN"}`, `{"id":25,"message":"x"}`, 200, `{"error":"Unauthorized","errorCode":401}`, 401},
	{"matrix", `{homeserver: "URL", room: "!r:example.com", token: "TOKEN"}`, `{"event_id":"$x"}`, 200, `{"errcode":"M_UNKNOWN_TOKEN","error":"TOKEN"}`, 401},
	{"mattermost", `{webhook_url: "URL/hooks/TOKEN"}`, `ok`, 200, `{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook."}`, 400},
	{"ntfy", `{url: "URL/pages", token: "tk_TOKEN"}`, `{"id":"sPs71M8A2T","event":"message","topic":"pages"}`, 200, `{"code":40101,"http":401,"error":"unauthorized"}`, 401},
	{"slack", `{token: "xoxb-TOKEN", channel: C1, api_url: "URL/api/"}`, `{"ok":true,"ts":"1.2","channel":"C1"}`, 200, `{"ok":false,"error":"invalid_auth"}`, 200},
	{"teams", `{webhook_url: "URL/workflows/x?sig=TOKEN"}`, ``, 202, `{"error":{"code":"DirectApiAuthorizationRequired","message":"x"}}`, 401},
	{"telegram", `{token: "1:TOKEN", chat_id: "1", api_url: "URL"}`, `{"ok":true,"result":{"message_id":42}}`, 200, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, 401},
	{"webhook", `{url: "URL/", bearer: "TOKEN"}`, ``, 204, ``, 401},
}

// TestSinkTestOfEachKind has a fake of each kind take a test, and refuse the token.
func TestSinkTestOfEachKind(t *testing.T) {
	const token = "T0kenSecret0123456789abcdefghijklmno"
	others := []string{"email", "exec", "kafka", "stdout", "route"} // tested elsewhere
	for _, k := range (&app{}).plugins().SinkKinds() {
		known := strings.Contains(strings.Join(others, " "), k)
		for _, tested := range testedKinds {
			known = known || tested.kind == k
		}
		if !known {
			t.Errorf("the kind %s has no test", k)
		}
	}
	for _, k := range testedKinds {
		t.Run(k.kind, func(t *testing.T) {
			code, answer := k.status, k.taken
			r := newTestReceiver(t, func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet && code == k.status { // the state of a room, which is not encrypted
					answering(404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`)(w, req)
					return
				}
				answering(code, answer)(w, req)
			})
			path := sinkFile(t, r, strings.ReplaceAll(fmt.Sprintf("{%s: %s}", k.kind, k.config), "TOKEN", token))
			if got := runCLI(t, "sink", "test", "team", "-c", path); got.code != 0 || !strings.HasPrefix(got.stdout, "team: delivered, answered ") || got.stderr != "" {
				t.Errorf("got %+v", got)
			}
			if bodies := r.received(); len(bodies) != 1 || !isMarkedAsTest(bodies[0]) {
				t.Errorf("the receiver got %q, want one message that is marked", bodies)
			}
			code, answer = k.wrong, strings.ReplaceAll(k.refused, "TOKEN", token)
			got := runCLI(t, "sink", "test", "team", "-c", path)
			if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "vokter-stream: sink team: ") || strings.Contains(got.stderr, token) {
				t.Errorf("a wrong token: got %+v", got)
			}
		})
	}
}

// isMarkedAsTest reports whether people see that a message is a test.
func isMarkedAsTest(body string) bool {
	if form, err := url.QueryUnescape(body); err == nil {
		body = form
	}
	return strings.Contains(body, "this is a test")
}

func TestSinkTestOfExec(t *testing.T) {
	out := filepath.Join(t.TempDir(), "got.json")
	conf := file(t, "c.yaml", fmt.Sprintf(`sinks:
  good: {exec: {command: [/bin/sh, -c, %q]}}
  bad: {exec: {command: [/bin/sh, -c, "echo no such bell >&2; exit 3"]}}
`, "cat >"+out))
	if got := runCLI(t, "sink", "test", "good", "-c", conf); got.code != 0 || !strings.HasPrefix(got.stdout, "good: delivered (") {
		t.Errorf("got %+v", got)
	}
	if b, err := os.ReadFile(out); err != nil || !isMarkedAsTest(string(b)) {
		t.Errorf("the command got %s, %v", b, err)
	}
	if got := runCLI(t, "sink", "test", "bad", "-c", conf); got.code != 1 || !strings.Contains(got.stderr, "no such bell; delivery would try it again later") {
		t.Errorf("got %+v", got)
	}
}

func TestSinkTestOfKafka(t *testing.T) {
	broker := kafkatest.Start(t, kfake.SeedTopics(1, "alerts"))[0]
	conf := file(t, "c.yaml", fmt.Sprintf("sinks: {log: {kafka: {brokers: [%q], topic: alerts}}}\n", broker))
	if got := runCLI(t, "sink", "test", "log", "-c", conf); got.code != 0 || !strings.HasPrefix(got.stdout, "log: delivered") {
		t.Errorf("got %+v", got)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics("alerts"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var records []string
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records = append(records, string(r.Value)) })
	if len(records) != 1 || !strings.Contains(records[0], `"type":"test"`) {
		t.Errorf("got %q, want one test", records)
	}
}

const mailPassword = "S3CRETPASSWORD"

// mailServer takes mail for ann@example.com, and repeats passwords that are wrong.
type mailServer chan string

func (m mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (m mailServer) AuthMechanisms() []string                    { return []string{sasl.Plain} }

func (m mailServer) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != "bot" {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong password " + pass}
		}
		return nil
	}), nil
}

func (m mailServer) Mail(string, *smtp.MailOptions) error { return nil }

func (m mailServer) Rcpt(to string, _ *smtp.RcptOptions) error {
	if to != "ann@example.com" {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func (m mailServer) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	m <- string(b)
	return err
}

func (m mailServer) Reset()        {}
func (m mailServer) Logout() error { return nil }

// TestSinkTestByMail runs in a process of its own, which trusts the server's certificate.
func TestSinkTestByMail(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	t.Setenv("SSL_CERT_FILE", file(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))))
	m := make(mailServer, 1)
	server := smtp.NewServer(m)
	server.TLSConfig = web.TLS
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = server.Serve(l) }()
	for name, tt := range map[string]struct {
		user, to string
		code     int
		want     string // in the one line
	}{
		"delivered":         {"bot", "ann@example.com", 0, "mail: delivered, answered 250 2.0.0 OK: queued ("},
		"wrong password":    {"bob", "ann@example.com", 1, "sink mail: the user name or password is refused: the server answered 535 5.7.8 wrong password ***; check its token, secret or password, and write the right one into the file; delivery tries again"},
		"unknown recipient": {"bot", "bob@example.com", 1, "sink mail: the server answered 550 5.1.1 no such user; delivery would give this receiver up"},
	} {
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		path := file(t, "c.yaml", fmt.Sprintf("allow: {sinks: [%s]}\nsinks:\n  mail: {email: {host: 127.0.0.1, port: %s, username: %s, password: %s, from: v@example.com, to: %s}}\n",
			loopback, port, tt.user, mailPassword, tt.to))
		got := runProcess(t, "sink", "test", "mail", "-c", path)
		line := got.stdout + got.stderr
		if got.code != tt.code || !strings.Contains(line, tt.want) || strings.Count(line, "\n") != 1 || strings.Contains(line, mailPassword) {
			t.Errorf("%s: got %+v, want %d and %s", name, got, tt.code, tt.want)
		}
		if got.code != 0 {
			continue
		}
		if mail := <-m; !strings.Contains(mail, "Subject: Test: ") {
			t.Errorf("%s: the message is not marked:\n%s", name, mail)
		}
	}
}

// TestMatrixRoom tests sinks for rooms that are encrypted, or that the account is not in.
func TestMatrixRoom(t *testing.T) {
	const (
		encrypted = "sink team: the room is encrypted, and notifications would be sent to it without encryption; " +
			"write the ID of a room that is not encrypted, or permit this with allow_unencrypted: true"
		outside = "sink team: the account is not in the room: answered 403 Forbidden: M_FORBIDDEN: User @v:example.org not in room; " +
			"invite the account to !r:example.org and let it join there"
	)
	for name, tt := range map[string]struct {
		state     http.HandlerFunc // of the room: m.room.encryption
		option    string
		code      int
		sent      string // by sink test
		connected string // by lint --connect
	}{
		"not encrypted":      {answering(404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`), "", 0, "team: delivered, answered 200 OK", "sink team: ok\n"},
		"encrypted":          {answering(200, `{"algorithm":"m.megolm.v1.aes-sha2"}`), "", 1, encrypted, encrypted},
		"encrypted, allowed": {answering(200, `{"algorithm":"m.megolm.v1.aes-sha2"}`), ", allow_unencrypted: true", 0, "team: delivered, answered 200 OK", "sink team: ok\n"},
		"outside":            {answering(403, `{"errcode":"M_FORBIDDEN","error":"User @v:example.org not in room"}`), "", 1, outside, outside},
		"wrong token":        {answering(401, `{"errcode":"M_UNKNOWN_TOKEN","error":"x"}`), "", 1, "check its token, secret or password", "check its token, secret or password"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestReceiver(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/state/m.room.encryption") {
					tt.state(w, r)
					return
				}
				answering(200, `{"event_id":"$1"}`)(w, r)
			})
			path := sinkFile(t, r, fmt.Sprintf(`{matrix: {homeserver: "URL", room: "!r:example.org", token: %s%s}}`, testSecret, tt.option))
			got := runCLI(t, "lint", "--connect", "-c", path)
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.connected) {
				t.Errorf("lint: got %+v, want %d and %s", got, tt.code, tt.connected)
			}
			if bodies := strings.Join(r.received(), ""); bodies != "" {
				t.Errorf("lint sent %s", bodies)
			}
			got = runCLI(t, "sink", "test", "team", "-c", path)
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.sent) {
				t.Errorf("sink test: got %+v, want %d and %s", got, tt.code, tt.sent)
			}
			if bodies := strings.Join(r.received(), ""); (bodies == "") != (tt.code != 0) {
				t.Errorf("sink test sent %q", bodies)
			}
			got = runCLI(t, "lint", "--connect", "-c", path, "--format", "json")
			if want := fmt.Sprintf(`{"kind":"sink_check","sink":"team","ok":%v`, tt.code == 0); got.code != tt.code || !strings.Contains(got.stdout, want) {
				t.Errorf("lint: got %+v, want %d and %s", got, tt.code, want)
			}
		})
	}
}
