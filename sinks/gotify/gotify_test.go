package gotify_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/gotify"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, `{"id":25,"appid":5,"message":"x","title":"x","priority":2,"date":"2026-01-02T03:04:05Z"}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":"25"}`),
			chattest.Answer(200, `{"error":"Bad Request","errorCode":400}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(h http.Header, body []byte) (string, []string, error) {
			if h.Get("X-Gotify-Key") == "" {
				t.Error("there is no token")
			}
			m := chattest.Decode[receivedMessage](t, body)
			checkPlainText(t, m)
			_, line, ok := strings.Cut("\n"+m.Message, "\n+ ")
			if !ok {
				t.Errorf("there is no difference in %.200q", m.Message)
			}
			line, _, _ = strings.Cut(line, "\n")
			return m.Extras.Ours.ID, []string{line[strings.LastIndex(line, ": ")+2:]}, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		c := gotify.Config{URL: registry.NewSecret(rawURL), Token: registry.NewSecret(o.Secret)}
		return chattest.Build(t, gotify.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what Gotify reads of a request.
type receivedMessage struct {
	Title, Message string
	Priority       int
	Extras         struct {
		Display struct {
			ContentType string `json:"contentType"`
		} `json:"client::display"`
		Notification struct {
			Click struct{ URL string }
		} `json:"client::notification"`
		Ours struct{ ID string } `json:"vokter::notification"`
	}
}

// checkPlainText fails the test unless apps show m as plain text that is not too long.
func checkPlainText(t *testing.T, m receivedMessage) {
	t.Helper()
	if m.Extras.Display.ContentType != "text/plain" || len([]rune(m.Message)) > 16_000 || m.Message == "" || m.Title == "" || strings.Contains(m.Title, "\n") {
		t.Errorf("%q, %d bytes, the title %q", m.Extras.Display.ContentType, len(m.Message), m.Title)
	}
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	c := gotify.Config{URL: registry.NewSecret(rawURL + "/gotify/"), Token: registry.NewSecret("AWTpRwsk0bnC5Ji"), Priority: 5}
	return chattest.Build(t, gotify.New, c)
}

// deliver returns what Gotify reads of n.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedMessage) {
	t.Helper()
	got, m := chattest.Send[receivedMessage](t, acceptAnswer, newLocalSink, n)
	checkPlainText(t, m)
	return got, m
}

// deliverWith returns what Gotify reads of a notification from a sink with these options.
func deliverWith(t *testing.T, c gotify.Config) receivedMessage {
	t.Helper()
	_, m := chattest.Send[receivedMessage](t, acceptAnswer, func(t *testing.T, rawURL string) pipeline.Sink {
		c.URL, c.Token = registry.NewSecret(rawURL), registry.NewSecret("t")
		return chattest.Build(t, gotify.New, c)
	}, chattest.Notification())
	checkPlainText(t, m)
	return m
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, m := deliver(t, n)
		if got.Method+" "+got.URI != "POST /gotify/message" || m.Extras.Ours.ID != n.ID {
			t.Errorf("got %s %s, the ID %q", got.Method, got.URI, m.Extras.Ours.ID)
		}
		chattest.Golden(t, name, got.Body)
	}
}

func TestBounds(t *testing.T) {
	if _, m := deliver(t, chattest.Long()); !strings.Contains(m.Message, "more") || strings.Count(m.Message, "\n- ") < 20 {
		t.Errorf("got %s", m.Message)
	}
}

// TestLongEcho: Gotify answers with the whole message, in which some characters take six bytes.
func TestLongEcho(t *testing.T) {
	r := chattest.NewReceiver(t, nil)
	r.Answers[0] = func(w http.ResponseWriter, _ *http.Request) {
		m := chattest.Decode[receivedMessage](t, r.Got[0].Body)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": 25, "message": m.Message, "title": m.Title})
	}
	c := gotify.Config{URL: registry.NewSecret(r.URL), Token: registry.NewSecret("t"), Template: templates.New("{{.title}}" + strings.Repeat("<", 15_900))}
	if err := chattest.Build(t, gotify.New, c).Deliver(t.Context(), chattest.Notification()); err != nil {
		t.Error(err)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Refuses(401, `{"error":"Unauthorized","errorCode":401,"errorDescription":"you need to provide a valid access token"}`, "the token is refused: answered 401 Unauthorized: check that it is that of an application: you need to provide"),
		chattest.Refuses(403, `{"error":"Forbidden","errorCode":403,"errorDescription":"you are not allowed to access this api"}`, "the token is refused: answered 403 Forbidden"),
		chattest.Refuses(401, `<html>a proxy</html>`, "401"),
		chattest.Means(400, `{"error":"Bad Request","errorCode":400,"errorDescription":"AWTpRwsk0bnC5Ji is bad"}`, failure.ClassRefused, "*** is bad", 0),
		chattest.Means(500, `{"error":"Internal Server Error","errorCode":500,"errorDescription":"database is locked"}`, failure.ClassRetry, "database is locked", 0),
		chattest.Without(200, `[]`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestTemplate(t *testing.T) {
	m := deliverWith(t, gotify.Config{Template: templates.New("Look: " + strings.Repeat("{{.title}}", 1000))})
	if !strings.HasPrefix(m.Message, "Look: Zeus & Co [*sale*]Zeus") || !strings.HasSuffix(m.Message, "…") {
		t.Errorf("got %s", m.Message)
	}
}

func TestConfig(t *testing.T) {
	url, token := registry.NewSecret("https://gotify.example.com"), registry.NewSecret("SECRET")
	for field, list := range map[string][]gotify.Config{
		"url":      {{Token: token}, {URL: registry.NewSecret("gotify.example.com/SECRET"), Token: token}},
		"token":    {{URL: url}, {URL: url, Token: registry.NewSecret("SECRET \n")}, {URL: url, Token: registry.NewSecret("SECRET\x00")}},
		"priority": {{URL: url, Token: token, Priority: 11}, {URL: url, Token: token, Priority: -1}},
	} {
		for _, c := range list {
			_, err := gotify.New(c)
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

// TestPriority: without one in the configuration, phones make a sound.
func TestPriority(t *testing.T) {
	for given, want := range map[int]int{0: 5, 1: 1, 10: 10} {
		if m := deliverWith(t, gotify.Config{Priority: given}); m.Priority != want {
			t.Errorf("priority %d: sent %d, want %d", given, m.Priority, want)
		}
	}
}
