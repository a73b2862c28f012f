// Package discord is the sink that posts notifications to a channel of Discord through a
// webhook.
//
// The URL of the webhook comes from the channel's settings: Edit Channel, Integrations,
// Webhooks, New Webhook, Copy Webhook URL. Whoever has it can post to the channel, so it
// is a secret.
//
// A message says in its first line what was found, and in an embed, which links to the
// page, shows each difference as a quote with the keyword bold and removed text struck.
// Discord takes 4,096 characters in an embed; what does not fit is counted as "and n more".
// The text of a page is escaped, and no message can mention anybody.
//
// Discord lets a webhook post about 30 messages a minute. A notification counts as
// delivered once Discord has answered with the ID of the message. There is no way to give
// Discord the ID of a notification, so one whose answer is lost may appear twice.
package discord
