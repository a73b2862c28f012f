package cli

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/test/slackfake"
)

// TestSlackCommand: a signed command subscribes the channel, and one that is signed otherwise does
// nothing.
func TestSlackCommand(t *testing.T) {
	const secret = "8f742231b10e8888abcd99yyyzzz85a5"
	p, chat := newPage(t, "<p>Zeus</p>"), slackfake.Start(t, nil)
	data := filepath.Join(t.TempDir(), "data")
	path := file(t, "c.yaml", fmt.Sprintf(`
data: %s
listen: 127.0.0.1:0
allow: {fetch: [%s], sinks: [%[2]s]}
sinks:
  chat: {slack: {token: %s, channel: C1, api_url: %s, signing_secret: %s}}
documents: [{url: %q, keep: true}]
`, data, loopback, slackfake.Token, chat.API(), secret, p.URL))
	s := start(t, "run", "-c", path)
	addr := s.awaitAddress(t, data)
	send := func(secret, text string) int {
		t.Helper()
		body := url.Values{
			"command": {"/vokter"}, "text": {text}, "channel_id": {"C42"}, "channel_name": {"legal"}, "user_id": {"U1"}, "response_url": {chat.URL + "/commands/1"},
		}.Encode()
		at := strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = io.WriteString(mac, "v0:"+at+":"+body)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/slack/chat", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Slack-Request-Timestamp", at)
		req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := send("another", "watch "+p.URL+" zeus"); got != http.StatusUnauthorized {
		t.Errorf("another secret: answered %d", got)
	}
	if got := send(secret, "watch "+p.URL+" sold out"); got != http.StatusOK {
		t.Errorf("answered %d; %s", got, &s.err)
	}
	s.await(t, &s.err, "was carried out")
	waitFor(t, "the subscription", func() bool {
		got := runCLI(t, "list", "--data", data, "--format", "json").stdout
		return strings.Contains(got, "slack-C42") && strings.Contains(got, "sold out") && strings.Contains(got, `"channel":"C42"`)
	})
	if got := send(secret, "cancel "+p.URL); got != http.StatusOK {
		t.Errorf("cancel: answered %d", got)
	}
	waitFor(t, "its end", func() bool {
		return !strings.Contains(runCLI(t, "list", "--data", data, "--format", "json").stdout, "slack-C42")
	})
	s.stop()
	<-s.ended
}
