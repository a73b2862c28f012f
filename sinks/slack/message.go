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

// Bounds of a message, in UTF-16 code units. Slack has refused 11,341 characters in all
// blocks together, which it does not document, and takes 50 blocks.
const (
	maxBlockChars = 9_000
	maxBlocks     = 40
	// A difference has at most 1,000: its snippet, its keywords and what is ours.
	maxSnippet   = 780
	maxKeywords  = 200
	lineOverhead = 20
	// reservedChars is more than our own words in the head and the foot of a message. The foot has the
	// URL once more, if it is not longer than maxLink.
	reservedChars = 100
	maxLink       = 500
	// maxText bounds the fallback text, escaped.
	maxText = 299
	// maxTemplateText bounds the text that a template makes; Slack splits 4,000 anywhere.
	maxTemplateText = 3_800
)

// budget is that of a layout.
var budget = render.Budget{
	Total: maxBlockChars - reservedChars - maxLink, Line: maxSnippet, Lines: maxBlocks - 2, LineCost: lineOverhead, Length: render.UTF16,
}

// message is one message to post.
type message struct {
	// id is the ID of the notification. It is empty if it must not be sent.
	id string
	// channel is where a bot posts it; empty for the channel of the sink.
	channel string
	// text is what notifications and screen readers show, escaped.
	text string
	// isMrkdwn says that text is mrkdwn.
	isMrkdwn bool
	// blocks are what is shown in place of text where there is room for it.
	blocks []slackgo.Block
}

// layOut returns m as blocks.
func layOut(m render.Message) []slackgo.Block {
	blocks := []slackgo.Block{richText(headElement(m))}
	for _, l := range m.Lines {
		blocks = append(blocks, richText(differenceElements(l)...))
	}
	if left := m.Left(); left != "" {
		foot := []slackgo.RichTextSectionElement{plainText(left)}
		if m.URL != "" && render.UTF16(m.URL) <= maxLink {
			foot = append(foot, plainText(": "), slackgo.NewRichTextSectionLinkElement(m.URL, "see the page", nil))
		}
		blocks = append(blocks, richText(slackgo.NewRichTextSection(foot...)))
	}
	if m.Link != "" && render.UTF16(m.Link) <= maxLink {
		blocks = append(blocks, richText(slackgo.NewRichTextSection(slackgo.NewRichTextSectionLinkElement(m.Link, "What changed", nil))))
	}
	return blocks
}

func richText(parts ...slackgo.RichTextElement) slackgo.Block {
	return slackgo.NewRichTextBlock("", parts...)
}

// headElement returns the headline, the page, and what else is to be said of all.
func headElement(m render.Message) slackgo.RichTextElement {
	headline := m.Headline
	switch {
	case m.Good:
		headline = "✅ " + headline
	case m.Reason != "":
		headline = "⚠️ " + headline
	}
	elements := []slackgo.RichTextSectionElement{bold(headline)}
	switch {
	case m.URL != "":
		elements = append(elements, plainText("\n"), slackgo.NewRichTextSectionLinkElement(m.URL, m.Title, nil))
	case m.Title != "":
		elements = append(elements, plainText("\n"+m.Title))
	}
	if m.Reason != "" {
		elements = append(elements, plainText("\n"+m.Reason))
	}
	for _, page := range m.Pages {
		elements = append(elements, plainText("\n"))
		if page.URL != "" {
			elements = append(elements, slackgo.NewRichTextSectionLinkElement(page.URL, page.Title, nil))
		} else {
			elements = append(elements, plainText(page.Title))
		}
		if page.What != "" {
			elements = append(elements, plainText(": "+page.What))
		}
	}
	return slackgo.NewRichTextSection(elements...)
}

// differenceElements returns one line and its snippet as a quotation.
func differenceElements(l render.Line) []slackgo.RichTextElement {
	sign := "✏️ "
	switch l.Event {
	case pipeline.Added:
		sign = "➕ "
	case pipeline.Removed:
		sign = "➖ "
	}
	line := []slackgo.RichTextSectionElement{plainText(sign + l.What() + " ")}
	if keywords := render.Cut(strings.Join(l.Keywords, ", "), maxKeywords, render.UTF16); keywords != "" {
		line = append(line, bold(keywords))
	}
	parts := []slackgo.RichTextElement{slackgo.NewRichTextSection(line...)}
	var quoted []slackgo.RichTextSectionElement
	for _, s := range render.Looks(l) {
		element := slackgo.NewRichTextSectionTextElement(s.Text, nil)
		if s.Bold || s.Struck {
			element.Style = &slackgo.RichTextSectionTextStyle{Bold: s.Bold, Strike: s.Struck}
		}
		quoted = append(quoted, element)
	}
	if len(quoted) > 0 {
		parts = append(parts, &slackgo.RichTextQuote{Type: slackgo.RTEQuote, Elements: quoted})
	}
	return parts
}

func bold(s string) slackgo.RichTextSectionElement {
	return slackgo.NewRichTextSectionTextElement(s, &slackgo.RichTextSectionTextStyle{Bold: true})
}

func plainText(s string) slackgo.RichTextSectionElement {
	return slackgo.NewRichTextSectionTextElement(s, nil)
}

// fallbackText returns m in one line, escaped: the headline, the title, the reason and the URL, as
// far as there is room.
func fallbackText(m render.Message) string {
	link := render.Mrkdwn(m.URL)
	if link != "" {
		link = " " + link
	}
	if render.UTF16(link) > maxText/2 {
		link = ""
	}
	text := m.Headline
	if m.Title != "" && !strings.Contains(m.URL, m.Title) {
		text += ": " + m.Title
	}
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	escaped := func(s string) int { return render.UTF16(render.Mrkdwn(s)) }
	return render.Mrkdwn(render.Cut(text, maxText-render.UTF16(link), escaped)) + link
}

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
