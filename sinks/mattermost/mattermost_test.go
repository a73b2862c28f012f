package mattermost_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark/extension"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/mattermost"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, "ok")

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "<html>ok</html>"), chattest.Answer(200, `{"id":"x"}`),
		},
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			m := chattest.Decode[receivedMessage](t, body)
			quotes, links := visibleText(t, m.Text)
			if len(links) > 1 || len(links) == 1 && links[0] != "https://example.com/" {
				t.Errorf("there are links to %q in %s", links, body)
			}
			return m.Props["vokter_id"], quotes, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		c := mattermost.Config{WebhookURL: registry.NewSecret(rawURL)}
		return chattest.Build(t, mattermost.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what Mattermost reads of a request.
type receivedMessage struct {
	Text, Channel, Username string
	Props                   map[string]string
}

// visibleText returns the quotes and links of a post. It fails the test where Mattermost would
// see a mention, or an emoji.
func visibleText(t *testing.T, post string) (quotes, links []string) {
	t.Helper()
	if strings.Contains(post, "<!") || strings.Contains(post, "<@") || len([]rune(post)) > 16383 {
		t.Errorf("there is a mention in the form of Slack, or too much text in %.200q", post)
	}
	all, quotes, links := chattest.Read(t, post, extension.Linkify)
	// This is how Mattermost splits the text of a post, in search of mentions.
	for _, word := range strings.FieldsFunc(all, func(r rune) bool {
		return !strings.ContainsRune(":.-_@", r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}) {
		word = strings.TrimLeft(word, ":.-_")
		if len(word) > 1 && (word[0] == '@' || strings.Count(word, ":") > 1 && strings.ContainsFunc(word, unicode.IsLetter)) {
			t.Errorf("%q is a mention or an emoji in %.200q", word, all)
		}
	}
	return quotes, links
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	c := mattermost.Config{WebhookURL: registry.NewSecret(rawURL + "/hooks/xxxgeneratedkeyxxx"), Channel: "town-square", Username: "vokter"}
	return chattest.Build(t, mattermost.New, c)
}

// deliver returns what Mattermost reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedMessage) {
	t.Helper()
	return chattest.Send[receivedMessage](t, acceptAnswer, newLocalSink, n)
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, m := deliver(t, n)
		if got.Method+" "+got.URI != "POST /hooks/xxxgeneratedkeyxxx" || m.Props["vokter_id"] != n.ID {
			t.Errorf("got %s %s, the ID %q", got.Method, got.URI, m.Props["vokter_id"])
		}
		visibleText(t, m.Text)
		chattest.Golden(t, name, got.Body)
	}
}

func TestBounds(t *testing.T) {
	_, m := deliver(t, chattest.Long())
	if quotes, _ := visibleText(t, m.Text); len(quotes) < 10 || !strings.Contains(m.Text, "more") {
		t.Errorf("%d differences are shown: %s", len(quotes), m.Text)
	}
}

func TestLink(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"https://u:p@example.com/a(b)?x=<1>&copy;|2#`y", "https://example.com/a%28b%29?x=%3C1%3E&copy;%7C2#%60y"},
		{"javascript:alert(1)", ""},
	} {
		n := chattest.Notification()
		n.URL, n.Diffs = tt.url, nil
		_, m := deliver(t, n)
		if _, links := visibleText(t, m.Text); strings.Join(links, " ") != tt.want {
			t.Errorf("got links to %q, want %q", links, tt.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Means(400, `{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","status_code":400}`, failure.ClassGone, "400 Bad Request: Invalid webhook.", 0),
		chattest.Refuses(403, `{"id":"web.incoming_webhook.channel_locked.app_error","message":"This webhook is not permitted."}`, "not permitted"),
		chattest.Means(404, `{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel."}`, failure.ClassGone, "find the channel", 0),
		chattest.Means(500, `{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel."}`, failure.ClassRetry, "500", 0),
		chattest.Means(501, `{"id":"web.incoming_webhook.disabled.app_error","message":"Incoming webhooks have been disabled."}`, failure.ClassRetry, "have been disabled", 0),
		chattest.Means(400, `{"id":"api.post.create_post.x","message":"the key xxxgeneratedkeyxxx is bad"}`, failure.ClassRefused, "the key *** is bad", 0),
		chattest.Means(404, `not found`, failure.ClassRetry, "404", 0),
		chattest.Without(200, `OK`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestRefusedLayoutGivesWayToPlainText(t *testing.T) {
	_, plain := chattest.GivesWay(t, chattest.Answer(400, `{"id":"x","message":"no"}`), acceptAnswer, newLocalSink)
	m := chattest.Decode[receivedMessage](t, plain)
	if m.Text == "" || m.Channel != "town-square" {
		t.Errorf("got %s", plain)
	}
	visibleText(t, m.Text)
}

func TestTemplate(t *testing.T) {
	r := chattest.NewReceiver(t, acceptAnswer)
	c := mattermost.Config{WebhookURL: registry.NewSecret(r.URL), Template: templates.New("**Look:** [{{.title}}]({{.url}}) @channel <!here>")}
	n := chattest.Notification()
	n.URL = strings.Replace(n.URL, "/item", "/@shop/item", 1)
	if err := chattest.Build(t, mattermost.New, c).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	m := chattest.Decode[receivedMessage](t, r.Got[0].Body)
	if want := "**Look:** [Zeus &amp; Co &#91;\\*sale\\*&#93;](https://shop.example/%40shop/item_%281%29?a=b&c=*d*) @\u200bchannel <\u200b!here>"; m.Text != want || m.Channel != "" {
		t.Errorf("got %s, want the text %q", r.Got[0].Body, want)
	}
}

func TestConfig(t *testing.T) {
	for _, raw := range []string{"", "example.com/hooks/SECRET", "ftp://example.com/SECRET"} {
		_, err := mattermost.New(mattermost.Config{WebhookURL: registry.NewSecret(raw)})
		chattest.Refused(t, err, "webhook_url", "SECRET")
	}
	good := registry.NewSecret("https://mattermost.example.com/hooks/SECRET")
	for field, list := range map[string][]mattermost.Config{
		"channel":  {{WebhookURL: good, Channel: "Town Square"}, {WebhookURL: good, Channel: "town\r\n"}, {WebhookURL: good, Channel: "jürgen"}},
		"username": {{WebhookURL: good, Username: "a\nb"}, {WebhookURL: good, Username: "a\x00"}, {WebhookURL: good, Username: " "}},
	} {
		for _, c := range list {
			_, err := mattermost.New(c)
			chattest.Refused(t, err, field, "SECRET")
		}
	}
	if _, err := mattermost.New(mattermost.Config{WebhookURL: good, Channel: "@ann.b", Username: "Page watch é"}); err != nil {
		t.Error(err)
	}
}
