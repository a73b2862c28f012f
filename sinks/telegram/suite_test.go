package telegram_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/telegram"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, `{"ok":true,"result":{"message_id":42,"date":1767323045,"chat":{"id":-100,"type":"supergroup"},"text":"x"}}`)

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"ok":true}`),
			chattest.Answer(200, `{"ok":false,"result":{"message_id":1}}`), chattest.Answer(200, `{"ok":false,"error_code":400,"description":"x"}`),
			chattest.Answer(200, `{"ok":true,"result":true}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m, err := read(body)
			if err != nil {
				return "", nil, err
			}
			quotes := check(t, m, "https://example.com/")
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

// received is what Telegram reads of a request.
type received struct {
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

func read(body []byte) (received, error) {
	var m received
	err := json.Unmarshal(body, &m)
	return m, err
}

// found is what Telegram makes links of by itself: mentions, hashtags, cashtags, commands,
// addresses.
var found = regexp.MustCompile(`[@#$]\pL|(^|[^\pL\d_/])/[\pL\d_]|://[\pL\d]|[\pL\d]\.\pL`)

// check returns the quotes of a message. It fails the test where Telegram would refuse it,
// or make more of it than its entities say; the only link is to url.
func check(t *testing.T, m received, url string) (quotes []string) {
	t.Helper()
	text := utf16.Encode([]rune(m.Text))
	if m.ParseMode != nil || !m.Preview.Disabled || len(text) > 4096 || len(text) == 0 || len(m.Entities) > 100 {
		t.Errorf("%d characters, %d entities, parse mode %v, preview off %v", len(text), len(m.Entities), m.ParseMode, m.Preview.Disabled)
	}
	if links := found.FindAllString(m.Text, -1); links != nil {
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
