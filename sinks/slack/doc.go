// Package slack posts notifications to a channel of Slack: as a bot, by its token, or
// through an incoming webhook.
//
// The text of a page goes into text elements of rich_text blocks, where Slack interprets
// nothing: no mention, no link, no markup, no emoji. Nothing is unfurled. A message that
// Slack refuses because of how it is made is posted once more as one line of plain text.
//
// Delivered is only what Slack says it has: with a token a message with a ts, through a
// webhook the answer "ok". Slack has no means to send something once only, so a message may
// come twice where an answer was lost; with a token its metadata holds the notification's ID.
package slack
