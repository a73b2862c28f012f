package template

import (
	"html"
	"strings"
)

// Escape makes a text literal in the markup of a receiver.
type Escape func(string) string

var (
	mrkdwn   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	markdown = strings.NewReplacer(pairs("\\`*_{}[]()<>#+-.!|~")...)
)

// pairs maps each character of special to itself behind a backslash, and keeps "@" from
// being a mention.
func pairs(special string) []string {
	list := []string{"@", "@\u200b"}
	for _, r := range special {
		list = append(list, string(r), `\`+string(r))
	}
	return list
}

// Mrkdwn escapes s for Slack's mrkdwn: it can mention nobody and hide no link. Asterisks
// and the like still format it, since Slack knows no escape for them.
func Mrkdwn(s string) string { return mrkdwn.Replace(s) }

// HTML escapes s for the text of HTML and the values of its attributes.
func HTML(s string) string { return html.EscapeString(s) }

// Markdown escapes s for the Markdown of Discord, Mattermost and Gotify: it formats
// nothing and mentions nobody.
func Markdown(s string) string { return markdown.Replace(s) }
