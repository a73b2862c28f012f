package telegram_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/telegram"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, `{"ok":true,"result":{"message_id":42,"date":1767323045,"chat":{"id":-100,"type":"supergroup"},"text":"x"}}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"ok":true}`),
			chattest.Answer(200, `{"ok":false,"result":{"message_id":1}}`), chattest.Answer(200, `{"ok":false,"error_code":400,"description":"x"}`),
			chattest.Answer(200, `{"ok":true,"result":true}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m := chattest.Decode[receivedMessage](t, body)
			quotes := checkMessage(t, m, "https://example.com/")
			if len(quotes) == 0 {
				quotes = []string{""} // an empty one is no entity
			}
			return "", quotes, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		c := telegram.Config{Token: registry.NewSecret("123456:" + o.Secret), ChatID: "-100", APIURL: rawURL}
		return chattest.Build(t, telegram.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what Telegram reads of a request.
type receivedMessage struct {
	ChatID    string `json:"chat_id"`
	Thread    int64  `json:"message_thread_id"`
	Text      string
	ParseMode *string `json:"parse_mode"`
	Entities  []struct {
		Type, URL      string
		Offset, Length int
	}
	Preview struct {
		Disabled bool `json:"is_disabled"`
	} `json:"link_preview_options"`
}

// linkPattern is what Telegram makes links of by itself: mentions, hashtags, cashtags, commands,
// addresses.
var linkPattern = regexp.MustCompile(`[@#$]\pL|(^|[^\pL\d_/])/[\pL\d_]|://[\pL\d]|[\pL\d]\.\pL`)

// checkMessage returns the quotes of a message. It fails the test where Telegram would refuse it,
// or make more of it than its entities say; the only link is to url.
func checkMessage(t *testing.T, m receivedMessage, url string) (quotes []string) {
	t.Helper()
	text := utf16.Encode([]rune(m.Text))
	if m.ParseMode != nil || !m.Preview.Disabled || len(text) > 4096 || len(text) == 0 || len(m.Entities) > 100 {
		t.Errorf("%d characters, %d entities, parse mode %v, preview off %v", len(text), len(m.Entities), m.ParseMode, m.Preview.Disabled)
	}
	if links := linkPattern.FindAllString(m.Text, -1); links != nil {
		t.Errorf("there are %q in %.200q", links, m.Text)
	}
	for _, e := range m.Entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(text) {
			t.Fatalf("the entity %v is not within %d characters", e, len(text))
		}
		part := string(utf16.Decode(text[e.Offset : e.Offset+e.Length]))
		switch e.Type {
		case "blockquote":
			quotes = append(quotes, strings.ReplaceAll(part, render.Blank, ""))
		case "text_link":
			if e.URL != url {
				t.Errorf("there is a link to %q", e.URL)
			}
		case "bold", "strikethrough":
		default:
			t.Errorf("there is an entity of type %s", e.Type)
		}
	}
	return quotes
}

const page = "https://shop.example/item_(1)?a=b&c=*d*"

func localConfig(rawURL string) telegram.Config {
	return telegram.Config{Token: registry.NewSecret("123456:ABC-DEF1234ghIkl"), ChatID: "-100", MessageThreadID: 7, APIURL: rawURL}
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	return chattest.Build(t, telegram.New, localConfig(rawURL))
}

// deliver returns what Telegram reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedMessage) {
	t.Helper()
	return chattest.Send[receivedMessage](t, acceptAnswer, func(t *testing.T, rawURL string) pipeline.Sink {
		return newLocalSink(t, rawURL+"/proxy/")
	}, n)
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, m := deliver(t, n)
		if got.Method+" "+got.URI != "POST /proxy/bot123456:ABC-DEF1234ghIkl/sendMessage" || m.ChatID != "-100" || m.Thread != 7 {
			t.Errorf("got %s %s for chat %s, topic %d", got.Method, got.URI, m.ChatID, m.Thread)
		}
		url := page
		if name != "changes" {
			url = n.URL
		}
		checkMessage(t, m, url)
		chattest.Golden(t, name, got.Body)
	}
}

// TestEntities: what is bold and struck is what should be, also behind an emoji.
func TestEntities(t *testing.T) {
	_, m := deliver(t, chattest.Notification())
	text := utf16.Encode([]rune(m.Text))
	parts := make(map[string][]string)
	for _, e := range m.Entities {
		parts[e.Type] = append(parts[e.Type], string(utf16.Decode(text[e.Offset:e.Offset+e.Length])))
	}
	for _, want := range []struct{ kind, text string }{
		{"bold", "Out of stock"}, {"bold", "Zeus"}, {"strikethrough", "(In stock at |Zeus|)"}, {"text_link", "Zeus & Co [*sale*]"},
	} {
		if got := "|" + strings.Join(parts[want.kind], "|") + "|"; !strings.Contains(got, "|"+want.text+"|") {
			t.Errorf("%q is not %s; what is: %s", want.text, want.kind, got)
		}
	}
}

// TestLinksAcrossStyles: an address, a mention or a command is broken also where a part of
// it looks different.
func TestLinksAcrossStyles(t *testing.T) {
	for snippet, changed := range map[string]string{
		"see evil.example now": ".example", "see evil.example then": "example", "ask @all": "all", "ask @one": "@", "do /start": "start", "by /stop": "/stop",
	} {
		n := chattest.Notification()
		n.Diffs = []pipeline.Diff{{Event: pipeline.Removed, Keyword: "see", Text: changed, Snippet: snippet}}
		_, m := deliver(t, n)
		if quotes := checkMessage(t, m, page); len(quotes) != 1 || quotes[0] != snippet {
			t.Errorf("got %q, want %q", quotes, snippet)
		}
	}
}

func TestBounds(t *testing.T) {
	_, m := deliver(t, chattest.Long())
	if quotes := checkMessage(t, m, page); len(quotes) < 5 || !strings.Contains(m.Text, "more") {
		t.Errorf("%d differences are shown: %s", len(quotes), m.Text)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Means(429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 35","parameters":{"retry_after":35}}`, failure.ClassLimited, "429 Too Many Requests: retry after 35", 35*time.Second),
		chattest.Means(200, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":3}}`, failure.ClassLimited, "answered 200", 3*time.Second),
		chattest.Refuses(403, `{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}`, "403 Forbidden: bot was blocked"),
		chattest.Refuses(401, `{"ok":false,"error_code":401,"description":"Unauthorized"}`, "the token is refused: answered 401 Unauthorized"),
		chattest.Refuses(400, `{"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send text messages to the chat"}`, "the bot may not write to the chat: answered 400"),
		chattest.Means(400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, failure.ClassGone, "chat not found", 0),
		chattest.Means(400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}`, failure.ClassPermanent, "set chat_id to -1001234567890", 0),
		chattest.Means(400, `{"ok":false,"error_code":400,"description":"Bad Request: entity 123456:ABC-DEF1234ghIkl is bad"}`, failure.ClassRefused, "entity *** is bad", 0),
		chattest.Means(404, `{"ok":false,"error_code":404,"description":"Not Found"}`, failure.ClassRetry, "404", 0),
		chattest.Means(500, `{"ok":false,"error_code":500,"description":"Internal"}`, failure.ClassRetry, "500", 0),
		chattest.Refuses(403, `{"description":"a proxy does not let this pass"}`, "403 Forbidden: a proxy"),
		chattest.Refuses(403, `<html>forbidden</html>`, "403"),
		chattest.Without(200, `{"ok":true}`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestRefusedLayoutGivesWayToPlainText(t *testing.T) {
	refuse := chattest.Answer(400, `{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities"}`)
	_, plain := chattest.GivesWay(t, refuse, acceptAnswer, newLocalSink)
	m := chattest.Decode[receivedMessage](t, plain)
	if len(m.Entities) > 0 {
		t.Errorf("got %s", plain)
	}
	checkMessage(t, m, "")
}

func TestTemplate(t *testing.T) {
	r := chattest.NewReceiver(t, acceptAnswer)
	c := localConfig(r.URL)
	c.Template = templates.New("*Look:* {{.title}} {{.url}} {{range .diffs}}{{.keyword}} {{.snippet}}{{end}}")
	n := chattest.Notification()
	n.Diffs = n.Diffs[3:4]
	if err := chattest.Build(t, telegram.New, c).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	m := chattest.Decode[receivedMessage](t, r.Got[0].Body)
	text, ok := strings.CutPrefix(m.Text, "*Look:* Zeus & Co [*sale*] https://shop.example/item_%281%29?a=b&c=*d* boom ")
	if !ok || len(m.Entities) > 0 {
		t.Errorf("got %s", r.Got[0].Body)
	}
	if links := linkPattern.FindAllString(text, -1); links != nil {
		t.Errorf("there are %q in %q", links, text)
	}
}

func TestRate(t *testing.T) {
	for chat, want := range map[string]float64{"5": 1, "-5": 20.0 / 60, "@news": 20.0 / 60} {
		c := localConfig("https://example.com")
		c.ChatID = chat
		if got, burst, ok := registry.RateOf(chattest.Build(t, telegram.New, c)); !ok || got != want || burst != 3 {
			t.Errorf("%s: got %v and %d, want %v", chat, got, burst, want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		field string
		alter func(*telegram.Config)
	}{
		{"token", func(c *telegram.Config) { c.Token = registry.Secret{} }},
		{"token", func(c *telegram.Config) { c.Token = registry.NewSecret("123:SECRET/../x") }},
		{"token", func(c *telegram.Config) { c.Token = registry.NewSecret("botSECRET") }},
		{"chat_id", func(c *telegram.Config) { c.ChatID = "" }},
		{"chat_id", func(c *telegram.Config) { c.ChatID = "news" }},
		{"message_thread_id", func(c *telegram.Config) { c.MessageThreadID = -1 }},
		{"api_url", func(c *telegram.Config) { c.APIURL = "api.telegram.org" }},
	} {
		c := localConfig("")
		tt.alter(&c)
		_, err := telegram.New(c)
		chattest.Refused(t, err, tt.field, "SECRET")
	}
	if _, err := telegram.New(localConfig("")); err != nil {
		t.Errorf("the default api_url gives %v", err)
	}
}
