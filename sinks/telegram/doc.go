// Package telegram is the sink that sends notifications to a chat of Telegram through a
// bot.
//
// Ask @BotFather for a bot: /newbot, then a name; it answers with the token, which is a
// secret. Whoever is to get messages has to press Start in a chat with the bot, or add it to
// the group, or make it an administrator of the channel. The ID of the chat stands in
// what api.telegram.org/botTOKEN/getUpdates answers once something was written there; a public
// channel or group can also be named, as @example.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck. Telegram takes 4,096
// characters in a message; what does not fit is counted as "and n more". Nothing is parsed
// as markup: formats are sent beside the text. Mentions, commands, hashtags and addresses in
// the text of a page, of which Telegram makes links by itself, are broken by a character
// that nobody sees.
//
// Telegram lets a bot write once a second to a person and 20 times a minute to a group. A
// notification counts as delivered once Telegram has answered with the ID of the message.
// There is no way to give Telegram the ID of a notification, so one whose answer is lost may
// appear twice.
package telegram
