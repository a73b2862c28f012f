package teams

import (
	"cmp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
)

// Bounds of a template's text as blocks, and of plain text, in bytes. A message of Teams
// may have 28 KB, the envelope and all names in it counted.
const (
	maxTemplate = 20_000
	maxPlain    = 2000
)

// budget keeps a message within its bound. A line has at most seven runs, each of up to 70
// bytes besides its text; what is not in the budget takes less than 4 KB. A snippet has as
// many bytes as 200 characters of any language.
var budget = render.Budget{Total: 24_000, Lines: 40, Line: 600, LineCost: 560, Length: encodedLen}

// encodedLen returns the number of bytes that s takes in a card. s must be cleaned.
func encodedLen(s string) int {
	return len(breakExpressions(s)) + strings.Count(s, `"`) + strings.Count(s, `\`)
}

// specialChars holds the first characters of functions and expressions in cards.
var specialChars = render.Chars("{$")

// breakExpressions breaks the functions and expressions that cards have, {{DATE(...)}} and ${...}, by
// an invisible character.
func breakExpressions(s string) string {
	return render.EscapeChars(s, specialChars, func(b *strings.Builder, _ rune, char byte, after rune) {
		b.WriteByte(char)
		if after == '{' {
			b.WriteString(render.Blank)
		}
	})
}

// block is a paragraph of a card: a RichTextBlock, in whose runs Markdown means nothing.
type block struct {
	Type    string    `json:"type"`
	ID      string    `json:"id,omitempty"`
	Inlines []textRun `json:"inlines"`
}

type textRun struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Weight string `json:"weight,omitempty"`
	Struck bool   `json:"strikethrough,omitempty"`
}

type cardAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

type receivedCard struct {
	Schema  string            `json:"$schema"`
	Type    string            `json:"type"`
	Version string            `json:"version"`
	Teams   map[string]string `json:"msteams"`
	Body    []block           `json:"body"`
	Actions []cardAction      `json:"actions,omitempty"`
}

type attachment struct {
	ContentType string       `json:"contentType"`
	Content     receivedCard `json:"content"`
}

type envelope struct {
	Type        string       `json:"type"`
	Attachments []attachment `json:"attachments"`
}

// encodeMessage returns the body of a request: a card of blocks, with a button that opens the page.
func encodeMessage(id, url string, blocks []block) []byte {
	blocks[0].ID = id
	c := receivedCard{
		Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4",
		Teams: map[string]string{"width": "Full"}, Body: blocks,
	}
	if url != "" {
		c.Actions = []cardAction{{"Action.OpenUrl", "Open the page", url}}
	}
	return outbound.JSON(envelope{"message", []attachment{{"application/vnd.microsoft.card.adaptive", c}}})
}

// paragraph is a block of runs, without the empty ones.
func paragraph(runs ...textRun) block {
	b := block{Type: "RichTextBlock", Inlines: []textRun{}}
	for _, r := range runs {
		if r.Type, r.Text = "TextRun", breakExpressions(r.Text); r.Text != "" {
			b.Inlines = append(b.Inlines, r)
		}
	}
	return b
}

const weightBolder = "Bolder"

// formatBlocks returns m as blocks, one for each difference. The first run of a block names the
// keywords that were found.
func formatBlocks(m render.Message) []block {
	blocks := []block{paragraph(textRun{Text: m.Headline, Weight: weightBolder})}
	for _, text := range []string{m.Title, m.Reason} {
		if text != "" {
			blocks = append(blocks, paragraph(textRun{Text: text}))
		}
	}
	for _, l := range m.Lines {
		runs := []textRun{{Text: l.Head() + ": "}}
		for _, s := range render.Looks(l) {
			r := textRun{Text: s.Text, Struck: s.Struck}
			if s.Bold {
				r.Weight = weightBolder
			}
			runs = append(runs, r)
		}
		blocks = append(blocks, paragraph(runs...))
	}
	for _, page := range m.Pages {
		blocks = append(blocks, paragraph(textRun{Text: page.String()}))
	}
	if left := m.Left(); left != "" {
		blocks = append(blocks, paragraph(textRun{Text: left}))
	}
	if more := m.Linked(); more != "" {
		blocks = append(blocks, paragraph(textRun{Text: more}))
	}
	return blocks
}

// textBlocks returns text as blocks, one for each line. The text has no functions or expressions any
// more: breakExpressions has broken them.
func textBlocks(text string) []block {
	var blocks []block
	for line := range strings.SplitSeq(text, "\n") {
		blocks = append(blocks, block{Type: "RichTextBlock", Inlines: []textRun{{Type: "TextRun", Text: cmp.Or(line, render.Blank)}}})
	}
	return blocks
}

// encodedBlocksLen returns the number of bytes that text takes as blocks.
func encodedBlocksLen(text string) int { return len(outbound.JSON(textBlocks(text))) }
