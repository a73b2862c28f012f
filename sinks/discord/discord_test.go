package discord_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/discord"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, `{"id":"1180000000000000000","type":0,"content":"x","channel_id":"1"}`)

func newSink(t *testing.T, rawURL string, how ...registry.Connection) pipeline.Sink {
	t.Helper()
	return chattest.Build(t, discord.New, discord.Config{WebhookURL: registry.NewSecret(rawURL)}, how...)
}

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"id":""}`),
			chattest.Answer(200, `{"id":1}`), chattest.Answer(200, "[]"), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m := chattest.Decode[receivedMessage](t, body)
			var texts []string
			for _, e := range m.Embeds {
				_, quotes, links := chattest.Read(t, e.Description)
				if len(links) > 0 || hasActiveMarkup(e.Description) || hasActiveMarkup(e.Title) || hasActiveMarkup(m.Content) {
					t.Errorf("there is a link in %s", body)
				}
				texts = append(texts, quotes...)
			}
			return "", texts, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		return newSink(t, rawURL, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what Discord reads of a message.
type receivedMessage struct {
	Content string
	Embeds  []struct {
		Title, URL, Description string
	}
	Mentions *struct{ Parse *[]string } `json:"allowed_mentions"`
}

// escaped is a character that Discord shows as it is; active are what it would make
// something of: addresses, mentions, emoji, links with a text.
var (
	escaped = regexp.MustCompile(`\\[^0-9A-Za-z\s]`)
	active  = regexp.MustCompile(`https?://|<[@#:/at]|@everyone|@here|:[a-z0-9_+-]+:|\[[^\]]*\]\(`)
)

// hasActiveMarkup reports whether Discord would make a link, a mention or the like of text.
func hasActiveMarkup(text string) bool {
	return active.MatchString(escaped.ReplaceAllString(text, "\x00"))
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	return newSink(t, rawURL)
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, _ := chattest.Send[receivedMessage](t, acceptAnswer, func(t *testing.T, rawURL string) pipeline.Sink {
			return newSink(t, rawURL+"/api/webhooks/1/T?thread_id=5")
		}, n)
		if want := "/api/webhooks/1/T?thread_id=5&wait=true"; got.Method != http.MethodPost || got.URI != want {
			t.Errorf("got %s %s, want %s", got.Method, got.URI, want)
		}
		chattest.Golden(t, name, got.Body)
	}
}

// checkBounds fails the test unless Discord would take body, and mention nobody.
func checkBounds(t *testing.T, body []byte) {
	t.Helper()
	m := chattest.Decode[receivedMessage](t, body)
	if m.Mentions == nil || m.Mentions.Parse == nil || len(*m.Mentions.Parse) != 0 {
		t.Errorf("allowed_mentions is missing or not empty in %s", body)
	}
	if utf16Len(m.Content) > 2000 {
		t.Errorf("the content has %d characters", utf16Len(m.Content))
	}
	for _, e := range m.Embeds {
		if a, b := utf16Len(e.Title), utf16Len(e.Description); a > 256 || b > 4096 || a+b > 6000 {
			t.Errorf("the title has %d characters, the description %d", a, b)
		}
	}
}

func TestBounds(t *testing.T) {
	got, m := chattest.Send[receivedMessage](t, acceptAnswer, newLocalSink, chattest.Long())
	checkBounds(t, got.Body)
	all, quotes, _ := chattest.Read(t, m.Embeds[0].Description)
	if len(quotes) < 3 || !strings.Contains(all, "more") {
		t.Errorf("%d differences are shown: %s", len(quotes), all)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Means(429, `{"message":"You are being rate limited.","retry_after":1.25,"global":false}`, failure.ClassLimited, "429 Too Many Requests: You are", 1250*time.Millisecond),
		chattest.Means(429, `{"retry_after":-1}`, failure.ClassLimited, "429", 0),
		chattest.Means(429, `{"retry_after":1e300}`, failure.ClassLimited, "429", 24*time.Hour),
		chattest.Means(404, `{"message":"Unknown Webhook","code":10015}`, failure.ClassGone, "404 Not Found: Unknown Webhook", 0),
		chattest.Refuses(401, `{"message":"Invalid Webhook Token","code":50027}`, "Invalid Webhook Token"),
		chattest.Means(404, `<html>not found</html>`, failure.ClassRetry, "404", 0),
		chattest.Means(400, `{"message":"Invalid Form Body","code":50035}`, failure.ClassRefused, "Invalid Form Body", 0),
		chattest.Means(500, `{"message":"x","code":0}`, failure.ClassRetry, "500", 0),
		chattest.Without(200, `<html>welcome</html>`, "answered 200 OK, but without "),
		chattest.Without(200, `{"id":"1","code":"none"}`, "answered 200 OK, but without "), // of another shape altogether
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestRefusedLayoutGivesWayToPlainText(t *testing.T) {
	_, plain := chattest.GivesWay(t, chattest.Answer(400, `{"message":"Invalid Form Body","code":50035}`), acceptAnswer, newLocalSink)
	checkBounds(t, plain)
	m := chattest.Decode[receivedMessage](t, plain)
	if m.Content == "" || len(m.Embeds) > 0 || hasActiveMarkup(m.Content) {
		t.Errorf("got %s", plain)
	}
	chattest.Read(t, m.Content)
}

func TestTemplate(t *testing.T) {
	got, m := chattest.Send[receivedMessage](t, acceptAnswer, func(t *testing.T, rawURL string) pipeline.Sink {
		c := discord.Config{WebhookURL: registry.NewSecret(rawURL), Template: templates.New("**Look:** [{{.title}}]({{.url}}) @everyone")}
		return chattest.Build(t, discord.New, c)
	}, chattest.Notification())
	checkBounds(t, got.Body)
	if len(m.Embeds) != 1 || m.Embeds[0].Description != `**Look:** [Zeus & Co \[\*sale\*\]](https://shop.example/item_%281%29?a=b&c=*d*) @everyone` {
		t.Errorf("got %s", got.Body)
	}
}

func TestConfig(t *testing.T) {
	for _, raw := range []string{"", "discord.com/api/webhooks/1/SECRET", "ftp://discord.com/SECRET", "https://%zz/SECRET"} {
		_, err := discord.New(discord.Config{WebhookURL: registry.NewSecret(raw)})
		chattest.Refused(t, err, "webhook_url", "SECRET")
	}
}
