package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// secretTexts are the secrets of the sinks in TestSecretsStaySecret.
var secretTexts = []string{"P4thSecret", "Qu3rySecret", "Us3rSecret", "T0kenSecret", "H3aderSecret", "B3arerSecret", "S1gningSecret", "UzFnbmluZ1NlY3JldA", "Passw0rdSecret"}

// secretSinks are sinks with a secret in each place that can hold one; %[1]s is a server
// without its scheme, %[2]s the port of a mail server.
const secretSinks = `
  webhook: {webhook: {url: "http://bot:Us3rSecret@%[1]s/P4thSecret?q=Qu3rySecret", secret: S1gningSecret, headers: {X-Key: H3aderSecret}}}
  bearer: {webhook: {url: "http://%[1]s/bearer", bearer: B3arerSecret, secret: whsec_UzFnbmluZ1NlY3JldA==, format: cloudevents}}
  slackbot: {slack: {token: xoxb-T0kenSecret, channel: C1, api_url: "http://%[1]s/"}}
  slackhook: {slack: {webhook_url: "http://%[1]s/services/P4thSecret"}}
  discord: {discord: {webhook_url: "http://%[1]s/api/webhooks/1/P4thSecret"}}
  telegram: {telegram: {token: "1:T0kenSecret", chat_id: "1", api_url: "http://%[1]s"}}
  teams: {teams: {webhook_url: "http://%[1]s/P4thSecret?sig=Qu3rySecret"}}
  mattermost: {mattermost: {webhook_url: "http://%[1]s/hooks/P4thSecret"}}
  ntfy: {ntfy: {url: "http://%[1]s/P4thSecret", token: tk_T0kenSecret}}
  gotify: {gotify: {url: "http://%[1]s/P4thSecret", token: T0kenSecret}}
  matrix: {matrix: {homeserver: "http://%[1]s", room: "!r:x", token: T0kenSecret}}
  email: {email: {host: 127.0.0.1, port: %[2]s, username: bot, password: Passw0rdSecret, from: a@example.com, to: b@example.com}}
  kafka: {kafka: {brokers: ["127.0.0.1:1"], topic: alerts, sasl: {mechanism: PLAIN, user: bot, password: Passw0rdSecret}}}
`

// newLeakingServer is a server that answers with all that it was told: it fails, redirects, refuses.
func newLeakingServer(t *testing.T) string {
	var mu sync.Mutex
	calls := make(map[string]int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		calls[r.URL.Path]++
		n := calls[r.URL.Path]
		mu.Unlock()
		told := fmt.Sprintf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		switch n % 4 {
		case 1:
			http.Error(w, told, http.StatusInternalServerError)
		case 2:
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		case 3:
			http.Error(w, fmt.Sprintf(`{"ok":false,"error":%q,"description":%q,"errcode":%q}`, told, told, told), http.StatusUnauthorized)
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// newLeakingMailServer is a mail server that offers no TLS, and repeats what it was told.
func newLeakingMailServer(t *testing.T) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "220 mail ESMTP\r\n")
				b := make([]byte, 1024)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					fmt.Fprintf(c, "250 %s\r\n", strings.TrimSpace(string(b[:n])))
				}
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// TestSecretsStaySecret lets every kind of sink fail in several ways at receivers that
// repeat what they are told, and looks for the secrets in all that the program says.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	p := newPage(t, "<p>Zeus. In stock.</p>")
	sinks := fmt.Sprintf(secretSinks, newLeakingServer(t), newLeakingMailServer(t))
	var names []string
	for line := range strings.SplitSeq(strings.TrimSpace(sinks), "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		names = append(names, name)
	}
	kinds := (&app{}).plugins().Sinks.Names()
	for _, k := range kinds {
		// Routes name other sinks and have no secrets of their own; an inbox sends nothing.
		if k != "stdout" && k != "exec" && k != "route" && k != "inbox" && !strings.Contains(sinks, "{"+k+":") {
			t.Errorf("no sink of kind %s is tried", k)
		}
	}
	data := filepath.Join(t.TempDir(), "d")
	conf := file(t, "c.yaml", fmt.Sprintf(`
data: %s
listen: 127.0.0.1:0
delivery: {retry: [10ms]}
health: [%[2]s]
sinks: %[3]s
subscriptions:
  - {url: %[4]q, client: legal, keywords: [out of stock], interval: 10s, sinks: [%[2]s]}
`, data, strings.Join(names, ", "), sinks, p.URL))
	var said strings.Builder
	say := func(r result) { said.WriteString(r.stdout + r.stderr) }
	say(runCLI(t, "lint", "-c", conf, "--allow", loopback))
	args := []string{"run", "-c", conf, "--allow", loopback, "--log-level", "debug"}
	say(runCLI(t, append(args, "--checks", "1")...))
	p.set(http.StatusOK, "<p>Zeus. Out of stock.</p>")
	run := start(t, append(args, "--every", "1s")...)
	addr := run.awaitAddress(t, data)
	waitFor(t, "all sinks to fail", func() bool {
		r := runCLI(t, "list", "--sinks", "--data", data, "--format", "json")
		failing := strings.Count(r.stdout, `"health":"failing"`) + strings.Count(r.stdout, `"health":"expired"`)
		return failing >= len(names)
	})
	say(runCLI(t, "list", "--sinks", "--data", data))
	for _, verb := range [][]string{{"list"}, {"list", "--sinks"}, {"explain", p.URL}} {
		say(runCLI(t, append(verb, "--data", data, "--format", "json")...))
	}
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/receivers", "/api/v1/dead-letters"} {
		resp, err := http.DefaultClient.Do(withToken(t, data, "http://"+addr+path))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		said.Write(b)
	}
	run.stop()
	<-run.ended
	said.WriteString(run.out.String() + run.err.String())
	for _, name := range names {
		for range 3 {
			r := runCLI(t, "sink", "test", name, "-c", conf, "--allow", loopback)
			if r.code != 1 {
				t.Errorf("sink test %s: got %+v", name, r)
			}
			say(r)
		}
	}
	for _, secret := range secretTexts {
		for line := range strings.SplitSeq(said.String(), "\n") {
			if strings.Contains(line, secret) {
				t.Errorf("%s is told: %.300s", secret, line)
			}
		}
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(said.String(), n) }) {
		t.Error("nothing was said")
	}
}
