package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

var _ registry.ActingSink = (*Slack)(nil)

// maxButtonValue is the largest value of a button, in characters.
const maxButtonValue = 2000

// SigningSecret returns the secret with which Slack signs requests, or "".
func (s *Slack) SigningSecret() string { return s.signingSecret }

// Home returns the channel of the sink.
func (s *Slack) Home() string { return s.channel }

// Answer shows text to the person whose request named raw, a response_url of Slack.
func (s *Slack) Answer(ctx context.Context, raw, text string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("its response_url is no URL")
	}
	if api, err := url.Parse(s.apiURL); err != nil || u.Host != answerHost && u.Host != api.Host {
		return fmt.Errorf("its response_url is not at %s", answerHost)
	}
	body, err := json.Marshal(map[string]any{"response_type": "ephemeral", "replace_original": false, "text": render.Mrkdwn(text), "unfurl_links": false})
	if err != nil {
		return err
	}
	a, err := s.sender.Do(ctx, http.MethodPost, u, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return err
	}
	return a.Err()
}

// answerHost is the host at which Slack takes answers.
const answerHost = "hooks.slack.com"

// buttons returns the buttons of n, or nil where it has none: it is about no subscription of one
// page, or nobody can act.
func (s *Slack) buttons(n pipeline.Notification, m render.Message) []slackgo.Block {
	if s.signingSecret == "" || n.Health != nil || n.URL == "" || n.Client == "" || n.Type == pipeline.NotificationTypeTest || n.Status != pipeline.StatusOK {
		return nil
	}
	value, err := json.Marshal(registry.ActionTarget{URL: n.URL, Client: n.Client})
	if err != nil || render.UTF16(string(value)) > maxButtonValue {
		return nil
	}
	label := func(text string) *slackgo.TextBlockObject {
		return slackgo.NewTextBlockObject(slackgo.PlainTextType, text, false, false)
	}
	mute := slackgo.NewButtonBlockElement(registry.ActionMute, string(value), label("Mute for a day"))
	cancel := slackgo.NewButtonBlockElement(registry.ActionCancel, string(value), label("Cancel")).WithStyle(slackgo.StyleDanger)
	cancel.Confirm = slackgo.NewConfirmationBlockObject(label("Cancel"), label("Stop watching this page for this channel?"), label("Stop watching"), label("Keep it"))
	elements := []slackgo.BlockElement{mute, cancel}
	if strings.HasPrefix(m.Link, "http") {
		open := slackgo.NewButtonBlockElement(registry.ActionOpen, "", label("Show the difference"))
		open.URL = m.Link
		elements = []slackgo.BlockElement{open, mute, cancel}
	}
	return []slackgo.Block{slackgo.NewActionBlock("", elements...)}
}
