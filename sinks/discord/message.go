package discord

import (
	"github.com/vokter/vokter/internal/chat"
	"github.com/vokter/vokter/internal/layout"
)

// Bounds of Discord, and how much plain text says, in UTF-16 code units: at least as many
// as characters, whatever those are.
const (
	maxContent     = 2000
	maxTitle       = 256
	maxDescription = 4096
	maxPlain       = 1000
)

// budget keeps the description within its bound: what is not in it is counted too.
var budget = layout.Budget{
	Total: maxDescription - 64, Lines: 20, LineCost: chat.LineCost,
	Length: func(s string) int { return layout.UTF16(s) + special.Count(s) }, // at least as much as it takes
}

// message is what a webhook is executed with.
type message struct {
	Content string  `json:"content,omitempty"`
	Embeds  []embed `json:"embeds,omitempty"`
	// Mentions are those that a message may have.
	Mentions mentions `json:"allowed_mentions"`
}

type mentions struct {
	Parse []string `json:"parse"`
}

type embed struct {
	Title       string `json:"title,omitempty"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description,omitempty"`
}

// noMentions lets a message mention nobody, whatever stands in it.
var noMentions = mentions{Parse: []string{}}

// embedded is m with its differences in an embed.
func embedded(m layout.Message) message {
	e := embed{
		Title: layout.Cut(chat.Literal(m.Title, escape), maxTitle, layout.UTF16), URL: m.URL,
		Description: layout.Cut(chat.Markdown(m, escape), maxDescription, layout.UTF16),
	}
	said := message{Content: layout.Cut(chat.Literal(m.Headline, escape), maxContent, layout.UTF16), Mentions: noMentions}
	if e.Title != "" || e.Description != "" { // Discord takes no empty one
		said.Embeds = []embed{e}
	}
	return said
}

// plain is m as short text.
func plain(m layout.Message) message {
	return message{Content: chat.Plain(m, maxPlain, escape), Mentions: noMentions}
}
