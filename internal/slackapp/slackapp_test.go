package slackapp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// The example of Slack's documentation: a request with its secret and its signature.
const (
	docSecret    = "8f742231b10e8888abcd99yyyzzz85a5"
	docTimestamp = "1531420618"
	docSignature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	docBody      = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

func TestVerify(t *testing.T) {
	at := time.Unix(1531420618, 0)
	for _, c := range []struct {
		name, secret, timestamp, signature, body string
		late                                     time.Duration
		want                                     string
	}{
		{"as it came", docSecret, docTimestamp, docSignature, docBody, 0, ""},
		{"five minutes later", docSecret, docTimestamp, docSignature, docBody, 5 * time.Minute, ""},
		{"later", docSecret, docTimestamp, docSignature, docBody, 5*time.Minute + time.Second, "five minutes"},
		{"from the future", docSecret, docTimestamp, docSignature, docBody, -6 * time.Minute, "five minutes"},
		{"another secret", "8f742231b10e8888abcd99yyyzzz85a6", docTimestamp, docSignature, docBody, 0, "signing secret"},
		{"another body", docSecret, docTimestamp, docSignature, docBody + "&text=x", 0, "signing secret"},
		{"another time", docSecret, "1531420619", docSignature, docBody, 0, "signing secret"},
		{"no time", docSecret, "", docSignature, docBody, 0, "no timestamp"},
		{"no signature", docSecret, docTimestamp, "", docBody, 0, "no signature"},
		{"an older signature", docSecret, docTimestamp, strings.TrimPrefix(docSignature, "v0="), docBody, 0, "no signature"},
		{"half a signature", docSecret, docTimestamp, docSignature[:20], docBody, 0, "no signature"},
	} {
		h := http.Header{"X-Slack-Request-Timestamp": {c.timestamp}, "X-Slack-Signature": {c.signature}}
		_, _, err := verify(c.secret, h, []byte(c.body), at.Add(c.late))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// recordingService is a Router that notes what it was asked for.
type recordingService struct {
	pages []inspect.Page
	asked chan string
	subs  chan pipeline.Subscription
	err   error
}

func (s *recordingService) record(format string, args ...any) error {
	s.asked <- fmt.Sprintf(format, args...)
	return s.err
}

func (s *recordingService) Subscribe(_ context.Context, sub pipeline.Subscription) error {
	s.subs <- sub
	return s.err
}
func (s *recordingService) Cancel(_ context.Context, u, c string) error {
	return s.record("cancel %s %s", u, c)
}
func (s *recordingService) Pause(_ context.Context, u, c string, until time.Time) error {
	if until.IsZero() {
		return s.record("pause %s %s", u, c)
	}
	return s.record("pause %s %s until %s", u, c, until.Format(time.RFC3339))
}
func (s *recordingService) Resume(_ context.Context, u, c string) error {
	return s.record("resume %s %s", u, c)
}
func (s *recordingService) Pages(context.Context, inspect.ListFilter) ([]inspect.Page, string, error) {
	return s.pages, "", nil
}

// testSink is a sink in which people act.
type testSink struct {
	secret  string
	answers chan string
}

func (c *testSink) Deliver(context.Context, pipeline.Notification) error { return nil }
func (c *testSink) SigningSecret() string                                { return c.secret }
func (c *testSink) Home() string                                         { return "#general" }
func (c *testSink) Answer(_ context.Context, url, text string) error {
	c.answers <- text
	return nil
}

type teamRoute struct{ pipeline.SinkFunc }

func (teamRoute) Route(pipeline.Notification, time.Time) []string { return []string{"chat"} }
func (teamRoute) Targets() []string                               { return []string{"chat"} }

// fixture is a handler with one sink in which people act.
type fixture struct {
	*recordingService
	*testSink
	h   *Handler
	now time.Time
}

func newFixture() *fixture {
	r := &fixture{
		recordingService: &recordingService{asked: make(chan string, 10), subs: make(chan pipeline.Subscription, 10)},
		testSink:         &testSink{secret: docSecret, answers: make(chan string, 10)}, now: time.Unix(1800000000, 0),
	}
	settings := new(Settings)
	settings.Configure(map[string]pipeline.Sink{"chat": r.testSink, "off": &testSink{}, "team": teamRoute{}})
	r.h = New(settings, r.recordingService, slog.New(slog.DiscardHandler))
	r.h.now = func() time.Time { return r.now }
	r.h.replays = newReplayGuard(r.now)
	return r
}

// send sends a signed body, and returns the status.
func (r *fixture) send(path, body string) int {
	at := strconv.FormatInt(r.now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(docSecret))
	io.WriteString(mac, "v0:"+at+":"+body)
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewBufferString(body))
	req.Header.Set("X-Slack-Request-Timestamp", at)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req)
	return w.Code
}

// buttonBody is the body of a pressed button, in the shape of Slack's documentation.
func buttonBody(t *testing.T, action, channel, name, page, client string) string {
	t.Helper()
	value, err := json.Marshal(registry.ActionTarget{URL: page, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	p := fmt.Sprintf(`{"type":"block_actions","user":{"id":"UA8RXUSPL","username":"jtorrance","team_id":"T9TK3CUKW"},"api_app_id":"AABA1ABCD","token":"9s8d9as89d8as9d8as989",
"container":{"type":"message","message_ts":"1548261231.000200","channel_id":%[1]q,"is_ephemeral":false},"trigger_id":"12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",
"team":{"id":"T9TK3CUKW","domain":"example"},"enterprise":null,"is_enterprise_install":false,"channel":{"id":%[1]q,"name":%[2]q},
"message":{"bot_id":"BAH5CA16Z","type":"message","text":"added: stock","user":"UAJ2RU415","ts":"1548261231.000200"},
"response_url":"https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209",
"actions":[{"action_id":%[3]q,"block_id":"=qXel","text":{"type":"plain_text","text":"View","emoji":true},"value":%[4]q,"type":"button","action_ts":"1548426417.840180"}]}`,
		channel, name, action, value)
	return url.Values{"payload": {p}}.Encode()
}

// commandBody is the body of a command, in the shape of Slack's documentation.
func commandBody(text string) string {
	return url.Values{
		"token": {"gIkuvaNzQIHg97ATvDxqgjtO"}, "team_id": {"T0001"}, "team_domain": {"example"}, "channel_id": {"C2147483705"}, "channel_name": {"test"},
		"user_id": {"U2147483697"}, "user_name": {"Steve"}, "command": {"/vokter"}, "text": {text},
		"response_url": {"https://hooks.slack.com/commands/1234/5678"}, "trigger_id": {"13345224609.738474920.8088930838d88f008e0"}, "api_app_id": {"A123456"},
	}.Encode()
}

const page = "https://example.com/a?b=c&d=e"

func watchedPages(channel string, sinks ...string) []inspect.Page {
	return []inspect.Page{{URL: page, State: inspect.StateActive, Subscriptions: []inspect.Subscription{{
		Subscription: pipeline.Subscription{URL: page, Client: "team", Sinks: sinks, Channel: channel}, State: inspect.StateActive,
	}}}}
}

func TestButtons(t *testing.T) {
	for _, c := range []struct {
		name, action, channel, channelName string
		pages                              []inspect.Page
		want, said                         string
	}{
		{"mute", registry.ActionMute, "C1", "general", watchedPages("", "chat"), "pause " + page + " team until 2027-01-16T08:00:00Z", "Paused until 2027-01-16 08:00 UTC"},
		{"cancel", registry.ActionCancel, "C1", "general", watchedPages("", "chat"), "cancel " + page + " team", "Cancelled"},
		{"through a route", registry.ActionCancel, "C1", "general", watchedPages("", "mail", "team"), "cancel " + page + " team", "Cancelled"},
		{"a channel of the subscription", registry.ActionCancel, "C7", "legal", watchedPages("C7", "chat"), "cancel " + page + " team", "Cancelled"},
		{"another channel", registry.ActionMute, "C9", "random", watchedPages("C7", "chat"), "", "Refused"},
		{"another sink", registry.ActionCancel, "C1", "general", watchedPages("", "mail"), "", "Refused"},
		{"nothing there", registry.ActionCancel, "C1", "general", nil, "", "no such subscription"},
	} {
		r := newFixture()
		r.pages = c.pages
		if code := r.send("/slack/chat", buttonBody(t, c.action, c.channel, c.channelName, page, "team")); code != http.StatusOK {
			t.Errorf("%s: answered %d", c.name, code)
			continue
		}
		if said := <-r.answers; !strings.Contains(said, c.said) {
			t.Errorf("%s: said %q, want %q", c.name, said, c.said)
		}
		if len(r.asked) > 0 != (c.want != "") || c.want != "" && <-r.asked != c.want {
			t.Errorf("%s: something else was done", c.name)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]pipeline.Subscription{
		"watch https://example.com/ sold out":                {URL: "https://example.com/", Keywords: []string{"sold out"}},
		"watch <https://example.com/a?b=1&amp;c=2>":          {URL: "https://example.com/a?b=1&c=2"},
		"Watch <http://example.com|example.com> refund":      {URL: "http://example.com", Keywords: []string{"refund"}},
		"  watch   https://example.com/x   two   words here": {URL: "https://example.com/x", Keywords: []string{"two words here"}},
	} {
		r := newFixture()
		if code := r.send("/slack/chat", commandBody(text)); code != http.StatusOK {
			t.Fatalf("%s: answered %d", text, code)
		}
		if said := <-r.answers; !strings.HasPrefix(said, "Watching "+want.URL) {
			t.Errorf("%s: said %q", text, said)
		}
		got := <-r.subs
		if got.URL != want.URL || strings.Join(got.Keywords, "|") != strings.Join(want.Keywords, "|") || got.Channel != "C2147483705" ||
			got.Client != "slack-C2147483705" || strings.Join(got.Sinks, " ") != "chat" {
			t.Errorf("%s: subscribed %+v", text, got)
		}
	}
	for text, want := range map[string]string{
		"cancel " + page: "cancel " + page + " slack-C2147483705", "pause " + page: "pause " + page + " slack-C2147483705",
		"pause " + page + " 3h": "pause " + page + " slack-C2147483705 until 2027-01-15T11:00:00Z",
		"pause " + page + " 7d": "pause " + page + " slack-C2147483705 until 2027-01-22T08:00:00Z",
	} {
		r := newFixture()
		r.send("/slack/chat", commandBody(text))
		<-r.answers
		if got := <-r.asked; got != want {
			t.Errorf("%s: did %s", text, got)
		}
	}
	for _, text := range []string{"", "help", "watch", "delete " + page} {
		r := newFixture()
		r.send("/slack/chat", commandBody(text))
		if said := <-r.answers; said != usage || len(r.asked)+len(r.subs) > 0 {
			t.Errorf("%q: said %q", text, said)
		}
	}
	for length, want := range map[string]string{
		"tomorrow": `"tomorrow" is not a duration; write `, "9999999h": "is too long; the longest duration is 2562047h",
	} {
		r := newFixture()
		r.send("/slack/chat", commandBody("pause "+page+" "+length))
		if said := <-r.answers; !strings.Contains(said, want) || len(r.asked) > 0 {
			t.Errorf("%s: said %q, want %q", length, said, want)
		}
	}
	r := newFixture()
	r.err = errors.New("url: it is not public")
	r.send("/slack/chat", commandBody("watch ftp://x y"))
	if said := <-r.answers; said != "That did not work: url: it is not public" {
		t.Errorf("said %q", said)
	}
	r = newFixture()
	r.pages = watchedPages("C2147483705", "chat")
	r.pages[0].Subscriptions[0].State = inspect.StatePaused
	r.send("/slack/chat", commandBody("resume "+page))
	if said := <-r.answers; !strings.HasPrefix(said, "Resumed") || <-r.asked != "resume "+page+" team" {
		t.Errorf("said %q", said)
	}
}

func TestRefusedRequests(t *testing.T) {
	r := newFixture()
	for path, want := range map[string]int{"/slack/none": 404, "/slack/off": 404, "/slack/team": 404, "/slack/": 404} {
		if got := r.send(path, commandBody("watch https://example.com/")); got != want {
			t.Errorf("%s: answered %d, want %d", path, got, want)
		}
	}
	for name, body := range map[string]string{
		"no JSON": "payload=x", "no target": url.Values{"payload": {`{"type":"block_actions","actions":[{"action_id":"vokter_cancel","value":"x"}]}`}}.Encode(),
		"no form": "%zz", "too large": strings.Repeat("x", maxBody+1),
	} {
		if got := r.send("/slack/chat", body); got != http.StatusBadRequest {
			t.Errorf("%s: answered %d", name, got)
		}
	}
	for name, body := range map[string]string{
		"a link": buttonBody(t, registry.ActionOpen, "C1", "general", page, "team"), "a check of the address": "ssl_check=1&token=x",
		"a dialog": url.Values{"payload": {`{"type":"view_submission"}`}}.Encode(),
	} {
		if got := r.send("/slack/chat", body); got != http.StatusOK || len(r.answers) > 0 {
			t.Errorf("%s: answered %d", name, got)
		}
	}
	req := httptest.NewRequest(http.MethodPost, "/slack/chat", strings.NewReader(commandBody("watch https://example.com/")))
	w := httptest.NewRecorder()
	if r.h.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("without a signature: %d", w.Code)
	}
	w = httptest.NewRecorder()
	if r.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/slack/chat", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if len(r.asked)+len(r.subs) > 0 {
		t.Error("something was done")
	}
}

// TestRepeatedRequests: whoever recorded a request of Slack cannot send it again, to this sink or
// another one with the same secret, nor to the next process.
func TestRepeatedRequests(t *testing.T) {
	r := newFixture()
	r.h.settings.Configure(map[string]pipeline.Sink{"chat": r.testSink, "same": r.testSink})
	body := commandBody("cancel " + page)
	if code := r.send("/slack/chat", body); code != http.StatusOK {
		t.Fatalf("answered %d", code)
	}
	<-r.answers
	for _, path := range []string{"/slack/chat", "/slack/same"} {
		if code := r.send(path, body); code != http.StatusUnauthorized {
			t.Errorf("%s: the repeated request was answered %d", path, code)
		}
	}
	if len(r.asked) != 1 {
		t.Errorf("it was carried out %d times", len(r.asked))
	}
	r.now = r.now.Add(time.Second)
	if code := r.send("/slack/chat", body); code != http.StatusOK {
		t.Errorf("the same request of a second later was answered %d", code)
	}
	<-r.answers
	r.h.replays = newReplayGuard(r.now.Add(time.Minute)) // as a new process
	if code := r.send("/slack/chat", body); code != http.StatusUnauthorized {
		t.Errorf("after a restart it was answered %d", code)
	}
}

// TestSeenIsBounded: when too many requests came, further ones are refused until some are too old.
func TestSeenIsBounded(t *testing.T) {
	now := time.Unix(1800000000, 0)
	s := newReplayGuard(now)
	for i := range maxRemembered {
		if err := s.add(strconv.Itoa(i), now, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.add("one more", now, now); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
	later := now.Add(maxSignatureAge + time.Second)
	if err := s.add("one more", later, later); err != nil || len(s.expires) != 1 {
		t.Errorf("got %v, and %d are remembered", err, len(s.expires))
	}
}

// TestBusyRequestsCanBeRepeated sends a request again that was refused because too many ran at once.
func TestBusyRequestsCanBeRepeated(t *testing.T) {
	r := newFixture()
	for range maxConcurrent {
		r.h.slots <- struct{}{}
	}
	if code := r.send("/slack/chat", commandBody("list")); code != http.StatusServiceUnavailable {
		t.Fatalf("answered %d", code)
	}
	<-r.h.slots
	if code := r.send("/slack/chat", commandBody("list")); code != http.StatusOK {
		t.Errorf("then answered %d", code)
	}
	<-r.answers
}
