// Package teams is the sink that posts notifications to a channel or chat of Microsoft
// Teams through a workflow.
//
// In Teams open the menu of the channel or chat, Workflows, and add "Send webhook alerts to
// a channel" (or "to a chat"); it ends with a URL, which is a secret: whoever has it can
// post. The workflow belongs to the user who made it and ends with that account unless it
// has further owners. The connectors that came before workflows are retired.
//
// A message is an Adaptive Card: what was found, the title of the page, each difference with
// the keyword bold and removed text struck, and a button that opens the page. A card has at
// most 28 KB; what does not fit is counted as "and n more". The text of a page stands where
// Teams reads no Markdown, and no message can mention anybody.
//
// A notification counts as delivered once the workflow has accepted it with a status from
// 200 to 299, usually 202. What becomes of it then only the run history of the workflow
// tells: a workflow that cannot post to its channel fails there. The ID of the notification
// is the id of the card's first element, for workflows that look for repetitions.
package teams
