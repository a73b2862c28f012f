// Package ntfy is the sink that publishes notifications to a topic of ntfy.sh or of an ntfy
// server of one's own, from where they reach phones and desktops.
//
// A topic needs not be made: subscribe to it in an ntfy app, and name its URL here. On a
// server without access control whoever knows the topic's name can read and write it, so
// choose one that is hard to guess; with access control add a token (Account, Access tokens,
// or "ntfy token add"), or the name and password of a user who may write to the topic. A
// server in a private network has to be permitted by allow.sinks or --allow.
//
// The title says what was found, the text below it has the page and one line for each
// difference, and a click opens the page. ntfy takes 4,096 bytes; what does not fit is counted
// as "and n more". The text of a page is plain text there.
//
// ntfy limits how much one address or user sends: by default 60 requests at once, and then one
// every five seconds (visitor-request-limit-burst and -replenish of a server of one's own);
// ntfy.sh takes 250 messages a day without a plan. What is more waits, and counts as no failure:
// it is tried again when ntfy says, after half a minute where it does not, and each hour once the
// messages of the day are used up.
//
// A notification counts as delivered
// once ntfy has answered with the ID of the message. ntfy does not drop what is sent twice.
package ntfy
