package teams_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/teams"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(202, "")

func newSink(t *testing.T, rawURL string, how ...registry.Connection) pipeline.Sink {
	t.Helper()
	return chattest.Build(t, teams.New, teams.Config{WebhookURL: registry.NewSecret(rawURL)}, how...)
}

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Decode: func(_ http.Header, body []byte) (string, []string, error) {
			c, err := read(body)
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

// card is what Teams reads of a request.
type card struct {
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

// read returns the card in body. It is an error if Teams would not take it, or make more
// of it than text.
func read(body []byte) (card, error) {
	var m struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     card
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return card{}, err
	}
	if len(body) > 28<<10 || m.Type != "message" || len(m.Attachments) != 1 || m.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
		return card{}, fmt.Errorf("this is no message with a card, or one of %d bytes: %.200s", len(body), body)
	}
	c := m.Attachments[0].Content
	if c.Type != "AdaptiveCard" || c.Version != "1.4" || len(c.Body) == 0 {
		return card{}, fmt.Errorf("this is no card: %.200s", body)
	}
	for _, b := range c.Body {
		if b.Type != "RichTextBlock" || len(b.Inlines) == 0 {
			return card{}, fmt.Errorf("there is a %s with %d inlines", b.Type, len(b.Inlines))
		}
		for _, i := range b.Inlines {
			if i.Type != "TextRun" || i.Text == "" || strings.Contains(i.Text, "{{") || strings.Contains(i.Text, "${") {
				return card{}, fmt.Errorf("there is a %s of %q", i.Type, i.Text)
			}
		}
	}
	return c, nil
}

// snippets are the texts of the blocks that begin with a sign.
func (c card) snippets() (texts []string) {
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
