package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
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
	others := []string{"email", "exec", "kafka", "stdout"} // tested elsewhere
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
			r := newTested(t, func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet && code == k.status { // the state of a room, which is not encrypted
					text(404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`)(w, req)
					return
				}
				text(code, answer)(w, req)
			})
			path := sinkFile(t, r, strings.ReplaceAll(fmt.Sprintf("{%s: %s}", k.kind, k.config), "TOKEN", token))
			if got := vs(t, "sink", "test", "team", "-c", path); got.code != 0 || !strings.HasPrefix(got.stdout, "team: delivered, answered ") || got.stderr != "" {
				t.Errorf("got %+v", got)
			}
			if bodies := r.got(); len(bodies) != 1 || !marked(bodies[0]) {
				t.Errorf("the receiver got %q, want one message that is marked", bodies)
			}
			code, answer = k.wrong, strings.ReplaceAll(k.refused, "TOKEN", token)
			got := vs(t, "sink", "test", "team", "-c", path)
			if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "vokter-stream: sink team: ") || strings.Contains(got.stderr, token) {
				t.Errorf("a wrong token: got %+v", got)
			}
		})
	}
}

// marked reports whether people see that a message is a test.
func marked(body string) bool {
	if form, err := url.QueryUnescape(body); err == nil {
		body = form
	}
	return strings.Contains(body, "this is a test")
}

// letters is a mail server that has one password.
type letters struct{ taken chan string }

func (l *letters) NewSession(*smtp.Conn) (smtp.Session, error) { return l, nil }
func (*letters) Reset()                                        {}
func (*letters) Logout() error                                 { return nil }
func (*letters) Mail(string, *smtp.MailOptions) error          { return nil }
func (*letters) Rcpt(to string, _ *smtp.RcptOptions) error {
	if to != "legal@example.com" {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	}
	return nil
}

func (l *letters) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	l.taken <- string(b)
	return err
}

func TestSinkTestOfEmail(t *testing.T) {
	mail := &letters{make(chan string, 10)}
	server := smtp.NewServer(mail)
	server.ErrorLog = log.New(io.Discard, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { l.Close(); server.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conf := func(to string) string {
		return file(t, "c.yaml", fmt.Sprintf("sinks: {mail: {email: {host: 127.0.0.1, port: %s, tls: none, from: vokter@example.com, to: %s}}}\n", port, to))
	}
	if got := vs(t, "sink", "test", "mail", "-c", conf("legal@example.com"), "--allow", loopback); got.code != 0 || !strings.HasPrefix(got.stdout, "mail: delivered") {
		t.Errorf("got %+v", got)
	}
	if n := len(mail.taken); n != 1 {
		t.Fatalf("%d messages, want 1", n)
	}
	if body := <-mail.taken; !strings.Contains(body, "Subject: Test") || !marked(body) {
		t.Errorf("nothing marks it: %s", body)
	}
	got := vs(t, "sink", "test", "mail", "-c", conf("nobody@example.com"), "--allow", loopback)
	if got.code != 1 || !strings.Contains(got.stderr, "550") || !strings.Contains(got.stderr, "; ") {
		t.Errorf("a wrong address: got %+v", got)
	}
}

func TestSinkTestOfExec(t *testing.T) {
	out := filepath.Join(t.TempDir(), "got.json")
	conf := file(t, "c.yaml", fmt.Sprintf(`sinks:
  good: {exec: {command: [/bin/sh, -c, %q]}}
  bad: {exec: {command: [/bin/sh, -c, "echo no such bell >&2; exit 3"]}}
`, "cat >"+out))
	if got := vs(t, "sink", "test", "good", "-c", conf); got.code != 0 || !strings.HasPrefix(got.stdout, "good: delivered (") {
		t.Errorf("got %+v", got)
	}
	if b, err := os.ReadFile(out); err != nil || !marked(string(b)) {
		t.Errorf("the command got %s, %v", b, err)
	}
	if got := vs(t, "sink", "test", "bad", "-c", conf); got.code != 1 || !strings.Contains(got.stderr, "no such bell; delivery would try it again later") {
		t.Errorf("got %+v", got)
	}
}

func TestSinkTestOfKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	broker := c.ListenAddrs()[0]
	conf := file(t, "c.yaml", fmt.Sprintf("sinks: {log: {kafka: {brokers: [%q], topic: alerts}}}\n", broker))
	if got := vs(t, "sink", "test", "log", "-c", conf); got.code != 0 || !strings.HasPrefix(got.stdout, "log: delivered") {
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
