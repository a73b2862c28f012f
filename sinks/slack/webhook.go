package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/pipeline"
)

// payload is the body for an incoming webhook. It has no place for our ID.
type payload struct {
	Text        string          `json:"text"`
	Blocks      []slackgo.Block `json:"blocks,omitempty"`
	Markup      bool            `json:"mrkdwn"`
	UnfurlLinks bool            `json:"unfurl_links"`
	UnfurlMedia bool            `json:"unfurl_media"`
}

// postToWebhook posts m through the webhook.
func (s *Slack) postToWebhook(ctx context.Context, m message) error {
	body, err := json.Marshal(payload{Text: m.text, Blocks: m.blocks, Markup: m.markup})
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding the message: %w", err))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	a, err := s.post.Do(ctx, http.MethodPost, s.hook, h, body)
	if err != nil {
		return err
	}
	said := string(a.Body)
	switch {
	case a.Status == http.StatusOK && said == "ok":
		return nil
	case a.Status != http.StatusOK:
		return statusError(a, strings.TrimSpace(said))
	}
	return a.Without(`the "ok" of a webhook`)
}
