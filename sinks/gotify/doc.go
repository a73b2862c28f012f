// Package gotify is the sink that sends notifications to a Gotify server, from where they
// reach its web page and its app for Android.
//
// Make an application in Gotify (Apps, Create Application) and name its token here; it can
// send messages and nothing else. A server in a private network has to be permitted by
// allow.sinks or --allow.
//
// The title says what was found, the text below it has the page and one line for each
// difference, and a click opens the page. The text of a page is plain text there, never
// Markdown. A notification counts as delivered once Gotify has answered with the ID of the
// message. The ID of the notification is in its extras, as id of vokter::notification; Gotify
// does not drop what is sent twice.
package gotify
