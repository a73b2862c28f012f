// Package mattermost is the sink that posts notifications to a channel of Mattermost
// through an incoming webhook.
//
// The URL of the webhook comes from the product menu: Integrations, Incoming Webhooks, Add
// Incoming Webhook. A system administrator has to have enabled them in the System Console,
// Integration Management. Whoever has the URL can post, so it is a secret. A server in a
// private network has to be permitted by allow.sinks or --allow.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck. Mattermost takes
// 16,383 characters in a post; what does not fit is counted as "and n more". The text of a
// page is escaped, and no message mentions anybody: "@channel", "@here", "@all" and names
// are broken by a character that nobody sees. A user whose own keywords stand in a message
// is told as with any other post.
//
// A notification counts as delivered once Mattermost has answered "ok". The ID of the
// notification is the property vokter_id of the post; Mattermost does not drop a second
// post with the same one.
package mattermost
