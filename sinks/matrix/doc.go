// Package matrix is the sink that sends notifications to a room of Matrix.
//
// Make an account for it on a homeserver, invite it into the room and let it join there. Messages
// are sent without encryption, so choose a room that is not encrypted: `sink test` and `lint
// --connect` refuse one that is, unless allow_unencrypted permits it. In Element the access
// token of the account is under All settings, Help & About, Advanced; the room's ID, which
// begins with "!", is under Room info, Settings, Advanced. Whoever has the token can do all
// that the account can. A homeserver in a private network has to be permitted by
// allow.sinks or --allow.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck; who reads plain text
// gets the same as that. The text of a page is escaped, and no message mentions anybody. By
// default a message is a notice, as those of all bots, with which apps make no sound; see
// msgtype.
//
// Homeservers limit how much an account sends. Synapse lets it send ten messages at once, and
// then one every five seconds, unless its rc_message says otherwise; what is more waits for as
// long as the homeserver asks, and counts as no failure. The homeserver's administrator can lift
// the limit for the account.
//
// A notification counts as delivered once the homeserver has answered with the ID of the
// event. The ID of the notification is that of the transaction, so that homeservers drop what
// is sent twice within about an hour, and is in the event as id of io.vokter.notification.
package matrix
