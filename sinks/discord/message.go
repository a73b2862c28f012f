package discord

import (
	"github.com/vokter/vokter/internal/render"
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
var budget = render.Budget{
	Total: maxDescription - 64, Lines: 20, LineCost: render.LineCost,
	Length: func(s string) int { return render.UTF16(s) + special.Count(s) }, // at least as much as it takes
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
func embedded(m render.Message) message {
	e := embed{
		Title: render.Cut(render.Literal(m.Title, escape), maxTitle, render.UTF16), URL: m.URL,
		Description: render.Cut(render.AsMarkdown(m, escape), maxDescription, render.UTF16),
	}
	said := message{Content: render.Cut(render.Literal(m.Headline, escape), maxContent, render.UTF16), Mentions: noMentions}
	if e.Title != "" || e.Description != "" { // Discord takes no empty one
		said.Embeds = []embed{e}
	}
	return said
}

// plain is m as short text.
func plain(m render.Message) message {
	return message{Content: render.AsPlain(m, maxPlain, escape), Mentions: noMentions}
}
