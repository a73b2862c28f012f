package ntfy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, `{"id":"sPs71M8A2T","time":1767323045,"expires":1767366245,"event":"message","topic":"pages","message":"x"}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":1}`),
			chattest.Answer(200, `{"code":40001,"http":400,"error":"x"}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m := chattest.Decode[receivedMessage](t, body)
			return "", []string{messageText(t, m)}, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		if strings.HasSuffix(rawURL, "/") {
			rawURL += "pages"
		}
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = nil // the token logs in
		return chattest.Build(t, ntfy.New, ntfy.Config{URL: registry.NewSecret(u.String()), Token: registry.NewSecret(o.Secret)}, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what ntfy reads of a request.
type receivedMessage struct {
	Topic, Title, Message, Click string
	Tags                         []string
	Priority                     int
}

// messageText returns the text of the only difference in m. It fails the test where ntfy would
// refuse m, or make it a file.
func messageText(t *testing.T, m receivedMessage) string {
	t.Helper()
	checkBounds(t, m)
	_, line, ok := strings.Cut("\n"+m.Message, "\n+ ")
	if !ok {
		t.Errorf("there is no difference in %.200q", m.Message)
	}
	line, _, _ = strings.Cut(line, "\n")
	return line[strings.LastIndex(line, ": ")+2:]
}

// checkBounds fails the test unless ntfy takes m as a message.
func checkBounds(t *testing.T, m receivedMessage) {
	t.Helper()
	if len(m.Message) > 4096 || m.Message == "" || m.Title == "" || strings.Contains(m.Title, "\n") {
		t.Errorf("%d bytes, the title %q", len(m.Message), m.Title)
	}
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	c := ntfy.Config{URL: registry.NewSecret(rawURL + "/my-topic"), Token: registry.NewSecret("tk_secret"), Priority: 4, Tags: []string{"eyes"}}
	return chattest.Build(t, ntfy.New, c)
}

// deliver returns what ntfy reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedMessage) {
	t.Helper()
	got, m := chattest.Send[receivedMessage](t, acceptAnswer, newLocalSink, n)
	checkBounds(t, m)
	return got, m
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, m := deliver(t, n)
		if got.Method+" "+got.URI != "POST /" || m.Topic != "my-topic" {
			t.Errorf("got %s %s, the topic %q", got.Method, got.URI, m.Topic)
		}
		chattest.Golden(t, name, got.Body)
	}
}

// TestBounds: a whole request has at most 8,192 bytes, also where JSON needs two for one.
func TestBounds(t *testing.T) {
	n := chattest.Long()
	n.URL = "https://shop.example/" + strings.Repeat("x", 1900)
	for i := range n.Diffs {
		n.Diffs[i].Snippet = strings.Repeat(`"\`, 100) + n.Diffs[i].Snippet
	}
	got, m := deliver(t, n)
	if len(got.Body) > 8192 || !strings.Contains(m.Message, "more") || strings.Count(m.Message, "\n- ") < 4 {
		t.Errorf("%d bytes: %s", len(got.Body), m.Message)
	}
}

func TestLogin(t *testing.T) {
	var header string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("Authorization")
		_, _ = io.Copy(io.Discard, r.Body)
		acceptAnswer(w, r)
	}))
	defer server.Close()
	url := registry.NewSecret(server.URL + "/topic/")
	for want, c := range map[string]ntfy.Config{
		"":                           {URL: url},
		"Bearer tk_secret":           {URL: url, Token: registry.NewSecret("tk_secret")},
		"Basic cGhpbDpteXNlY3JldA==": {URL: url, Username: "phil", Password: registry.NewSecret("mysecret")},
	} {
		if err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification()); err != nil {
			t.Fatal(err)
		}
		if header != want {
			t.Errorf("got %q, want %q", header, want)
		}
	}
}

// TestLoginIsScrubbed answers with the login, as a proxy may that echoes headers.
func TestLoginIsScrubbed(t *testing.T) {
	r := chattest.NewReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"the header `+req.Header.Get("Authorization")+` is bad"}`)
	})
	c := ntfy.Config{URL: registry.NewSecret(r.URL + "/topic"), Username: "phil", Password: registry.NewSecret("mysecret")}
	err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification())
	if err == nil || !strings.Contains(err.Error(), "the header Basic ***") || strings.Contains(err.Error(), "cGhpb") {
		t.Errorf("got %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Refuses(401, `{"code":40101,"http":401,"error":"unauthorized","link":"https://ntfy.sh/docs/publish/#authentication"}`, "the token is refused, or the password: answered 401 Unauthorized: check it, or the user and password: unauthorized"),
		chattest.Refuses(403, `{"code":40301,"http":403,"error":"forbidden"}`, "the token, or the user, may not write to the topic: forbidden"),
		chattest.Refuses(403, `<html>a proxy</html>`, "403"),
		chattest.Means(413, `{"code":41303,"http":413,"error":"JSON body too large"}`, failure.ClassRefused, "JSON body too large", 0),
		chattest.Means(429, `{"code":42901,"http":429,"error":"limit reached: too many requests"}`, failure.ClassLimited, "too many requests", 0),
		chattest.Means(429, `{"code":42908,"http":429,"error":"limit reached: daily message quota reached"}`, failure.ClassLimited, "quota", time.Hour),
		chattest.Means(507, `{"code":50701,"http":507,"error":"cannot publish to UnifiedPush topic without previously active subscriber"}`, failure.ClassRetry, "507", 0),
		chattest.Without(200, `{"error":"my-topic and tk_secret are bad"}`, "*** and *** are bad"),
		chattest.Without(200, `{}`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestTemplate(t *testing.T) {
	r := chattest.NewReceiver(t, acceptAnswer)
	c := ntfy.Config{URL: registry.NewSecret(r.URL + "/t"), Template: templates.New("Look: {{.title}}" + strings.Repeat("ä", 3000))}
	if err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification()); err != nil {
		t.Fatal(err)
	}
	m := chattest.Decode[receivedMessage](t, r.Got[0].Body)
	if !strings.HasPrefix(m.Message, "Look: Zeus & Co [*sale*]ää") || !strings.HasSuffix(m.Message, "ä…") {
		t.Errorf("got %s", r.Got[0].Body)
	}
	checkBounds(t, m)
}

func TestConfig(t *testing.T) {
	good := registry.NewSecret("https://ntfy.sh/topic")
	secret := registry.NewSecret("SECRET")
	for _, raw := range []string{"", "ntfy.sh/SECRET", "https://ntfy.sh", "https://ntfy.sh/", "https://ntfy.sh/SECRET.topic", "https://ntfy.sh/a%2FSECRET"} {
		_, err := ntfy.New(ntfy.Config{URL: registry.NewSecret(raw)})
		chattest.Refused(t, err, "url", "SECRET")
	}
	for field, list := range map[string][]ntfy.Config{
		"url":      {{URL: registry.NewSecret("https://u:SECRET@ntfy.sh/topic"), Token: secret}, {URL: registry.NewSecret("https://u:SECRET@ntfy.sh/topic"), Username: "u", Password: secret}},
		"token":    {{URL: good, Token: secret, Username: "u"}, {URL: good, Token: registry.NewSecret("SECRET\x7f")}},
		"password": {{URL: good, Username: "u"}},
		"username": {{URL: good, Password: secret}, {URL: good, Username: "a:b", Password: secret}},
		"priority": {{URL: good, Priority: 6}},
		"tags":     {{URL: good, Tags: slices.Repeat([]string{"a"}, 11)}},
		"tags[1]":  {{URL: good, Tags: []string{"a", "b,c"}}},
	} {
		for _, c := range list {
			_, err := ntfy.New(c)
			chattest.Refused(t, err, field, "SECRET")
		}
	}
}

// TestHealthTitle: the title of a health event says what happened, and to which page or sink.
func TestHealthTitle(t *testing.T) {
	for want, h := range map[string]pipeline.Health{
		"failing: shop.example/item":  {Event: pipeline.HealthFailing, URL: "https://shop.example/item"},
		"receiver failing: sink team": {Event: pipeline.HealthReceiverFailing, Receiver: &pipeline.Receiver{Sink: "team"}},
	} {
		n := pipeline.Notification{ID: "H", Type: pipeline.NotificationTypeHealth, Status: string(h.Event), Health: &h}
		if _, m := deliver(t, n); m.Title != want {
			t.Errorf("got the title %q, want %q", m.Title, want)
		}
	}
}
