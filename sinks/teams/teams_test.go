package teams_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(202, "")

func newSink(t *testing.T, rawURL string, how ...registry.Connection) pipeline.Sink {
	t.Helper()
	return chattest.Build(t, teams.New, teams.Config{WebhookURL: registry.NewSecret(rawURL)}, how...)
}

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			c, err := readCard(body)
			if err != nil {
				return "", nil, err
			}
			for _, a := range c.Actions {
				if a.URL != "https://example.com/" {
					t.Errorf("there is a link to %q", a.URL)
				}
			}
			return c.Body[0].ID, c.snippets(), nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		return newSink(t, rawURL, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedCard is what Teams reads of a request.
type receivedCard struct {
	Type, Version string
	Body          []struct {
		Type, ID string
		Inlines  []struct {
			Type, Text, Weight string
			Strikethrough      bool
		}
	}
	Actions []struct{ Type, Title, URL string }
}

// readCard returns the card in body. It is an error if Teams would not take it, or make more
// of it than text.
func readCard(body []byte) (receivedCard, error) {
	var m struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     receivedCard
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return receivedCard{}, err
	}
	if len(body) > 28<<10 || m.Type != "message" || len(m.Attachments) != 1 || m.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
		return receivedCard{}, fmt.Errorf("this is no message with a card, or one of %d bytes: %.200s", len(body), body)
	}
	c := m.Attachments[0].Content
	if c.Type != "AdaptiveCard" || c.Version != "1.4" || len(c.Body) == 0 {
		return receivedCard{}, fmt.Errorf("this is no card: %.200s", body)
	}
	for _, b := range c.Body {
		if b.Type != "RichTextBlock" || len(b.Inlines) == 0 {
			return receivedCard{}, fmt.Errorf("there is a %s with %d inlines", b.Type, len(b.Inlines))
		}
		for _, i := range b.Inlines {
			if i.Type != "TextRun" || i.Text == "" || strings.Contains(i.Text, "{{") || strings.Contains(i.Text, "${") {
				return receivedCard{}, fmt.Errorf("there is a %s of %q", i.Type, i.Text)
			}
		}
	}
	return c, nil
}

// snippets are the texts of the blocks that begin with a sign.
func (c receivedCard) snippets() (texts []string) {
	for _, b := range c.Body {
		first := b.Inlines[0].Text
		if !strings.HasPrefix(first, "+ ") && !strings.HasPrefix(first, "- ") {
			continue
		}
		text := ""
		for _, i := range b.Inlines[1:] {
			text += i.Text
		}
		texts = append(texts, strings.ReplaceAll(text, render.Blank, ""))
	}
	return texts
}

const path = "/workflows/0123456789abcdef/triggers/manual/paths/invoke?api-version=2016-06-01&sig=S1gnatureS1gnature"

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	return newSink(t, rawURL+path)
}

// deliver returns what Teams reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedCard) {
	t.Helper()
	r := chattest.NewReceiver(t, acceptAnswer)
	if err := newLocalSink(t, r.URL).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	c, err := readCard(r.Got[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.Got[0], c
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, c := deliver(t, n)
		if got.Method+" "+got.URI != "POST "+path || c.Body[0].ID != n.ID {
			t.Errorf("got %s %s, the ID %q", got.Method, got.URI, c.Body[0].ID)
		}
		if (n.URL == "") != (len(c.Actions) == 0) {
			t.Errorf("%s: there are %d buttons", name, len(c.Actions))
		}
		chattest.Golden(t, name, got.Body)
	}
}

// TestStyles: what is bold and struck is what should be.
func TestStyles(t *testing.T) {
	_, c := deliver(t, chattest.Notification())
	bold, struck := "|", ""
	for _, b := range c.Body {
		for _, i := range b.Inlines {
			if i.Weight == "Bolder" {
				bold += i.Text + "|"
			}
			if i.Strikethrough {
				struck += i.Text
			}
		}
	}
	if !strings.Contains(bold, "|Out of stock|Zeus|") || struck != "(In stock at Zeus)" {
		t.Errorf("bold are %q, struck is %q", bold, struck)
	}
}

func TestBounds(t *testing.T) {
	n := chattest.Long()
	n.URL = "https://example.com/?" + strings.Repeat("<\"", 600)
	got, c := deliver(t, n)
	texts := c.snippets()
	if len(texts) < 10 || !strings.Contains(c.Body[len(c.Body)-1].Inlines[0].Text, "more") || len(c.Actions) != 1 {
		t.Errorf("%d bytes, %d differences", len(got.Body), len(texts))
	}
}

// TestManyRuns: what a card needs besides its texts is bounded too.
func TestManyRuns(t *testing.T) {
	n := chattest.Notification()
	n.URL, n.Diffs = "https://example.com/?"+strings.Repeat("x", 1900), nil
	for i := range 60 {
		context := strings.Repeat(`\"`, 200)
		n.Diffs = append(n.Diffs, pipeline.Diff{
			Event: pipeline.Removed, Keyword: "in the shop", Text: "shop (now)", Snippet: context + strconv.Itoa(i) + " in the shop (now) " + context, Offset: i,
		})
	}
	if _, c := deliver(t, n); len(c.snippets()) < 15 { // deliver fails the test for too large a card
		t.Errorf("%d differences are shown", len(c.snippets()))
	}
}

func TestVerdicts(t *testing.T) {
	const off = `{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"Could not execute workflow 'x' trigger 'manual' with state '`
	chattest.Verdicts(t, newLocalSink,
		chattest.Means(404, `{"error":{"code":"WorkflowNotFound","message":"The workflow 'x' could not be found."}}`, failure.ClassGone, "404 Not Found: The workflow 'x'", 0),
		chattest.Means(400, off+`Deleted': trigger is not enabled."}}`, failure.ClassGone, "'Deleted'", 0),
		chattest.Refuses(400, off+`Disabled': trigger is not enabled."}}`, "the workflow is turned off: answered 400 Bad Request: Could not"),
		chattest.Means(400, `{"error":{"code":"TriggerInputSchemaMismatch","message":"sig=S1gnatureS1gnature"}}`, failure.ClassRefused, "400 Bad Request: sig=***", 0),
		chattest.Refuses(401, `{"error":{"code":"DirectApiAuthorizationRequired","message":"no"}}`, "401 Unauthorized: no"),
		chattest.Means(502, `{"error":{"code":"NoResponse","message":"The server did not receive a response."}}`, failure.ClassRetry, "502", 0),
	)
}

func TestRefusedLayoutGivesWayToPlainText(t *testing.T) {
	_, plain := chattest.GivesWay(t, chattest.Answer(400, `{"error":{"code":"x","message":"no"}}`), acceptAnswer, newLocalSink)
	if c, err := readCard(plain); err != nil || len(c.Body) < 3 || len(plain) > 8000 {
		t.Errorf("%v: got %s", err, plain)
	}
}

func TestTemplate(t *testing.T) {
	for source, want := range map[string]string{
		"*Look:* {{.title}}\n\n{{.url}}":               "*Look:* Zeus & Co [*sale*]|\u200b|https://shop.example/item_%281%29?a=b&c=*d*|",
		strings.Repeat("x\n\n", 5000):                  "",
		"{{range .diffs}}{{trunc 30 .keyword}}{{end}}": "out of stockstockzeusboom{\u200b{DATE(1)}} $\u200b{x}|",
	} {
		r := chattest.NewReceiver(t, acceptAnswer)
		s := chattest.Build(t, teams.New, teams.Config{WebhookURL: registry.NewSecret(r.URL), Template: templates.New(source)})
		n := chattest.Notification()
		n.Diffs[4].Keyword = "{{DATE(1)}} ${x}"
		if err := s.Deliver(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		c, err := readCard(r.Got[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, b := range c.Body {
			got += b.Inlines[0].Text + "|"
		}
		if want != "" && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, raw := range []string{"", "logic.azure.com/SECRET", "ftp://logic.azure.com/SECRET"} {
		_, err := teams.New(teams.Config{WebhookURL: registry.NewSecret(raw)})
		chattest.Refused(t, err, "webhook_url", "SECRET")
	}
}
