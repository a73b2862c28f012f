package slackfake

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// post makes a request, with JSON for a webhook, else with a form.
func post(t *testing.T, to, body string) (status int, said string) {
	t.Helper()
	kind := "application/x-www-form-urlencoded"
	if strings.HasPrefix(body, "{") {
		kind = "application/json"
	}
	resp, err := http.Post(to, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

func form(pairs ...string) string {
	v := url.Values{"token": {Token}, "channel": {"C1"}, "text": {"x"}}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func TestRefusals(t *testing.T) {
	section := func(text string) string {
		return fmt.Sprintf(`{"type":"section","text":{"type":"mrkdwn","text":%q}}`, text)
	}
	rich := func(inline string) string {
		return `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + inline + `]}]}]`
	}
	many := func(n int, block string) string { return "[" + strings.Repeat(block+",", n-1) + block + "]" }
	for name, tt := range map[string]struct{ body, word string }{
		"no token":                 {form("token", ""), "not_authed"},
		"another token":            {form("token", "xoxb-1"), "invalid_auth"},
		"no channel":               {form("channel", "general"), "channel_not_found"},
		"nothing to say":           {form("text", ""), "no_text"},
		"a text that is split":     {form("text", strings.Repeat("x", MaxText+1)), "msg_too_long"},
		"blocks that are no JSON":  {form("blocks", "{"), "invalid_blocks_format"},
		"no blocks":                {form("blocks", "[]"), "invalid_blocks"},
		"51 blocks":                {form("blocks", many(51, section("x"))), "invalid_blocks"},
		"a long block":             {form("blocks", many(1, section(strings.Repeat("x", 3001)))), "invalid_blocks"},
		"long blocks":              {form("blocks", many(4, section(strings.Repeat("x", 2500)))), "msg_blocks_too_long"},
		"a long ID":                {form("blocks", `[{"type":"divider","block_id":"`+strings.Repeat("x", 256)+`"}]`), "invalid_blocks"},
		"a header with markup":     {form("blocks", `[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`), "invalid_blocks"},
		"a long header":            {form("blocks", `[{"type":"header","text":{"type":"plain_text","text":"`+strings.Repeat("x", 151)+`"}}]`), "invalid_blocks"},
		"11 fields":                {form("blocks", `[{"type":"section","fields":`+many(11, `{"type":"plain_text","text":"x"}`)+`}]`), "invalid_blocks"},
		"an empty text":            {form("blocks", rich(`{"type":"text","text":""}`)), "invalid_blocks"},
		"an empty section":         {form("blocks", rich("")), "invalid_blocks"},
		"another kind of link":     {form("blocks", rich(`{"type":"link","url":"javascript:x","text":"x"}`)), "invalid_blocks"},
		"metadata without payload": {form("metadata", `{"event_type":"x"}`), "invalid_metadata_schema"},
		"metadata that is no JSON": {form("metadata", `{`), "invalid_metadata_format"},
	} {
		s := Start(t, nil)
		if _, said := post(t, s.API()+"chat.postMessage", tt.body); said != fmt.Sprintf(`{"error":%q,"ok":false}`, tt.word) {
			t.Errorf("%s: got %s, want %s", name, said, tt.word)
		}
		if len(s.Messages()) != 0 {
			t.Errorf("%s: it was posted", name)
		}
	}
}

func TestWebhook(t *testing.T) {
	s := Start(t, nil)
	for _, tt := range []struct {
		url, body string
		status    int
		said      string
	}{
		{s.Webhook("C1"), `{"text":"x"}`, 200, "ok"},
		{s.Webhook("C1"), `{`, 400, "invalid_payload"},
		{s.Webhook("C1"), `{"text":"x","blocks":[]}`, 400, "invalid_payload"},
		{s.Webhook("C1"), `{"text":""}`, 400, "no_text"},
		{s.URL + "/services/T1/C1/wrong", `{"text":"x"}`, 403, "invalid_token"},
		{s.URL + "/services/T1", `{"text":"x"}`, 404, "no_service"},
	} {
		if status, said := post(t, tt.url, tt.body); status != tt.status || said != tt.said {
			t.Errorf("%s: got %d %s, want %d %s", tt.body, status, said, tt.status, tt.said)
		}
	}
	if m := s.Messages(); len(m) != 1 || !m[0].Webhook || !m[0].Unfurls || !m[0].Markup {
		t.Errorf("got %+v", m)
	}
}

// TestRate: a channel takes a burst, then one a second; another one has a rate of its own.
func TestRate(t *testing.T) {
	now := time.Unix(1000, 0)
	s := Start(t, func() time.Time { return now })
	send := func(channel string) int {
		status, _ := post(t, s.API()+"chat.postMessage", form("channel", channel))
		return status
	}
	for range Burst {
		if got := send("C1"); got != 200 {
			t.Fatalf("got %d within the burst", got)
		}
	}
	if got := send("C1"); got != 429 {
		t.Errorf("got %d after the burst, want 429", got)
	}
	if status, said := post(t, s.Webhook("C1"), `{"text":"x"}`); status != 429 || said != "rate_limited" {
		t.Errorf("the webhook says %d %s", status, said)
	}
	if got := send("C2"); got != 200 {
		t.Errorf("got %d from another channel", got)
	}
	now = now.Add(time.Second)
	if a, b := send("C1"), send("C1"); a != 200 || b != 429 {
		t.Errorf("after a second: got %d and %d, want 200 and 429", a, b)
	}
	seen := map[string]bool{}
	for _, m := range s.Messages() {
		if seen[m.TS] {
			t.Errorf("the ts %s came twice", m.TS)
		}
		seen[m.TS] = true
	}
}

func TestScript(t *testing.T) {
	s := Start(t, nil)
	s.Script("C1", Answer{Error: "internal_error"}, RateLimited("2"), Answer{Lost: true})
	if _, said := post(t, s.API()+"chat.postMessage", form()); said != `{"error":"internal_error","ok":false}` {
		t.Errorf("got %s", said)
	}
	if status, _ := post(t, s.API()+"chat.postMessage", form()); status != 429 {
		t.Errorf("got %d", status)
	}
	if resp, err := http.Post(s.API()+"chat.postMessage", "application/x-www-form-urlencoded", strings.NewReader(form())); err == nil {
		resp.Body.Close()
		t.Errorf("got %s, want a broken connection", resp.Status)
	}
	if got := len(s.Messages()); got != 1 {
		t.Errorf("%d messages, want the one whose answer was lost", got)
	}
	if got := s.Requests(); len(got) != 3 || got[0] != "internal_error" || got[2] != "" {
		t.Errorf("got %+v", got)
	}
}

func TestThreads(t *testing.T) {
	s := Start(t, nil)
	reply := func(ts string) string {
		_, said := post(t, s.API()+"chat.postMessage", form("thread_ts", ts))
		return said
	}
	post(t, s.API()+"chat.postMessage", form())
	root := s.Messages()[0].TS
	if said := reply(root); !strings.Contains(said, `"thread_ts":"`+root+`"`) {
		t.Errorf("got %s", said)
	}
	s.Lock(root)
	if said := reply(root); !strings.Contains(said, "cannot_reply_to_message") {
		t.Errorf("got %s", said)
	}
	if said := reply("1.1"); strings.Contains(said, "thread_ts") || !strings.Contains(said, `"ok":true`) {
		t.Errorf("got %s", said)
	}
}
