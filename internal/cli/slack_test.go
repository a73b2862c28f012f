package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/test/slackfake"
)

// TestRunToSlack carries the changes of a hostile page to channels of Slack, as a bot with
// threads and through a webhook. One of the messages is refused for its layout, and the
// token and the URL are told nowhere.
func TestRunToSlack(t *testing.T) {
	const evil = "&lt;!channel&gt; *x* &amp; &lt;http://e|b&gt; :boom: %41"
	p := newPage(t, "<title>Shop</title><p>Zeus. In stock. "+evil+"</p>", "<title>Shop</title><p>Zeus. Out of stock. "+evil+"</p>",
		"<title>Shop</title><p>Zeus. In stock. "+evil+"</p>")
	fake := slackfake.Start(t, nil)
	fake.Script("C2", slackfake.Answer{Error: "invalid_payload"})
	path := file(t, "c.yaml", fmt.Sprintf(`
fetch: {per_host: {concurrency: 8, rate: 1000/s}}
sinks:
  bot: {slack: {token: %s, channel: "#general", api_url: %q, thread: true}}
  hook: {slack: {webhook_url: %q}}
  out: {stdout: {}}
health: [out]
subscriptions:
  - {url: %q, keywords: [out of stock], ignore_case: true, sinks: [bot, hook]}
`, slackfake.Token, fake.API(), fake.Webhook("C2"), p.URL))
	r := vs(t, "run", "-c", path, "--allow", loopback, "--checks", "3", "--every", "0s", "--log-level", "debug")
	if r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	var bot, hook []slackfake.Message
	for _, m := range fake.Messages() {
		if m.Unfurls || m.Markup || !strings.Contains(m.Text, ": out of stock: Shop "+p.URL) {
			t.Errorf("got %+v", m)
		}
		if m.Webhook {
			hook = append(hook, m)
		} else {
			bot = append(bot, m)
		}
	}
	if len(bot) != 2 || len(hook) != 2 {
		t.Fatalf("%d messages of the bot, %d of the webhook, want 2 each: %s", len(bot), len(hook), r.stderr)
	}
	if bot[0].Thread != "" || bot[1].Thread != bot[0].TS || !bot[1].Broadcast {
		t.Errorf("the bot's are no thread: %+v", bot)
	}
	for _, m := range bot {
		const want = `. \u003c!channel\u003e *x* \u0026 \u003chttp://e|b\u003e :boom: %41"}`
		if !strings.Contains(string(m.Blocks), want) || !strings.Contains(string(m.Metadata), "vokter.notification") {
			t.Errorf("got %s with %s, want in it %s", m.Blocks, m.Metadata, want)
		}
	}
	if hook[0].Blocks != nil || hook[1].Blocks == nil {
		t.Errorf("got %+v, want the first one plain", hook)
	}
	if !strings.Contains(r.stdout, "invalid_payload") {
		t.Errorf("the operator is not told that the layout was refused: %s", r.stdout)
	}
	secret := fake.Webhook("C2")[strings.LastIndexByte(fake.Webhook("C2"), '/')+1:]
	for _, s := range []string{slackfake.Token, secret} {
		if strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("%s is told: %s%s", s, r.stdout, r.stderr)
		}
	}
}

// TestLintOfSlack: what cannot be is told with its place, without the secrets.
func TestLintOfSlack(t *testing.T) {
	path := file(t, "c.yaml", `sinks:
  a: {slack: {token: xapp-S3CRET, channel: C1}}
  b: {slack: {}}
  c: {slack: {webhook_url: "https://hooks.slack.com/S3CRET", thread: true}}
  d: {slack: {token: xoxb-1, chanel: C1}}
`)
	r := vs(t, "lint", "-c", path)
	for _, want := range []string{
		":2:22: sinks.a.slack.token: a bot's token is needed", ":3:14: ", "either token and channel, or webhook_url",
		":4:", "thread: threads need a token", `"chanel"`, `"channel"`,
	} {
		if !strings.Contains(r.stderr+r.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	if r.code != 2 || strings.Contains(r.stderr+r.stdout, "S3CRET") {
		t.Errorf("got %+v", r)
	}
}

// TestSinkTestOfSlack sends a test message as the bot, and with a token that was revoked.
func TestSinkTestOfSlack(t *testing.T) {
	fake := slackfake.Start(t, nil)
	run := func(token string) result {
		return vs(t, "sink", "test", "team", "--allow", loopback, "-c",
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
