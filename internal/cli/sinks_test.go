package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
)

// exampleValues stand for what the examples of sinks take from the environment.
var exampleValues = map[string]string{
	"SLACK_TOKEN": "xoxb-1234567890-abcdef", "TELEGRAM_TOKEN": "123456789:AAF-5bDkYz0123456789abcdefghijklmno",
}

// Each kind of sink has a page in docs/sinks, with an example that this program takes.
func TestExamplesOfSinks(t *testing.T) {
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, kind := range a.plugins().Sinks.Names() {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sinks", kind+".md"))
		if err != nil {
			t.Errorf("%s has no page: %v", kind, err)
			continue
		}
		_, rest, _ := strings.Cut(string(page), "```yaml\n")
		example, _, ok := strings.Cut(rest, "```")
		if !ok || !strings.Contains(example, kind+":") {
			t.Errorf("the page of %s shows no example of it", kind)
			continue
		}
		c, err := parseExample(a, kind+".md", example)
		if err != nil || len(c.Router.Sinks) == 0 {
			t.Errorf("the example of %s: got %v", kind, err)
		}
	}
}

// parseExample reads a configuration whose variables have some value of their sort.
func parseExample(a *app, name, example string) (*config.Config, error) {
	return config.Parse(name, []byte(example), config.Options{
		Registry: a.plugins(),
		LookupEnv: func(name string) (string, bool) {
			if v, ok := exampleValues[name]; ok {
				return v, true
			}
			if strings.HasSuffix(name, "_URL") {
				return "https://example.com/hooks/0123456789abcdef", true
			}
			return "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", true
		},
	})
}

// Each sink for people takes a template, which is tried.
func TestSinksForPeopleTakeTemplates(t *testing.T) {
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, kind := range []string{"slack", "email", "discord", "telegram", "teams", "mattermost", "ntfy", "gotify", "matrix"} {
		example, err := os.ReadFile(filepath.Join("..", "..", "sinks", kind, "example.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseExample(a, kind, string(example)+"      template: '{{.headline}} {{.url}} {{.reason}}'\n"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		_, err = parseExample(a, kind, string(example)+"      template: '{{.titel}}'\n")
		if err == nil || !strings.Contains(err.Error(), kind+".template: fails for an ordinary notification: line 1") {
			t.Errorf("%s: got %v, want a template that fails", kind, err)
		}
	}
}

// The examples of the README, the guide and the index are valid as well, templates included.
func TestExamplesOfReadme(t *testing.T) {
	secrets := t.TempDir()
	for name, secret := range map[string]string{"slack": "xoxb-1-2-abc", "hook": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, path := range []string{"README.md", "docs/guide.md", "docs/sinks/README.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(strings.ReplaceAll(string(page), "/run/secrets", secrets), "```yaml\n")
		if len(parts) < 3 {
			t.Errorf("%s has %d examples", path, len(parts)-1)
		}
		for _, part := range parts[1:] {
			example, _, _ := strings.Cut(part, "```")
			if strings.HasPrefix(example, "sources:") { // its sinks stand in another one
				example = "sinks: {ops: {stdout: {}}}\n" + example
			}
			if _, err := config.Parse(path, []byte(example), config.Options{Registry: a.plugins()}); err != nil {
				t.Errorf("got %v of\n%s", err, example)
			}
		}
	}
}

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
	others := []string{"email", "exec", "kafka", "stdout", "route", "inbox"} // tested in their packages, or below
	for _, k := range (&app{}).plugins().Sinks.Names() {
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

// TestMatrixRoom: a room that is encrypted fails before anything is sent.
func TestMatrixRoom(t *testing.T) {
	const encrypted = "sink team: the room is encrypted, and notifications would be sent to it without encryption; " +
		"write the ID of a room that is not encrypted, or permit this with allow_unencrypted: true"
	for option, code := range map[string]int{"": 1, ", allow_unencrypted: true": 0} {
		r := newTestReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				answering(200, `{"algorithm":"m.megolm.v1.aes-sha2"}`)(w, r)
				return
			}
			answering(200, `{"event_id":"$1"}`)(w, r)
		})
		path := sinkFile(t, r, fmt.Sprintf(`{matrix: {homeserver: "URL", room: "!r:example.org", token: %s%s}}`, testSecret, option))
		for _, args := range [][]string{{"lint", "--connect"}, {"sink", "test", "team"}} {
			got := runCLI(t, append(args, "-c", path)...)
			if got.code != code || strings.Contains(got.stderr, encrypted) != (code != 0) {
				t.Errorf("%v%s: got %+v, want %d", args, option, got, code)
			}
		}
		if bodies := strings.Join(r.received(), ""); (bodies == "") != (code != 0) {
			t.Errorf("%s: sent %q", option, bodies)
		}
		got := runCLI(t, "lint", "--connect", "-c", path, "--format", "json")
		if want := fmt.Sprintf(`{"kind":"sink_check","sink":"team","ok":%v`, code == 0); got.code != code || !strings.Contains(got.stdout, want) {
			t.Errorf("lint%s: got %+v, want %d and %s", option, got, code, want)
		}
	}
}
