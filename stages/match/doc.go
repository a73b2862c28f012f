// Package match finds whose keywords a change touches: the stage that turns changes into
// notifications, and its core, the Matcher, which needs neither transport nor clock.
//
// A keyword is counted within each group of blocks: it is added where the new side holds
// more occurrences than the old, removed where it holds fewer. Only occurrences that touch
// an edit are counted; all others stand on both sides, so the balance is the same.
//
// All keywords of a document are in one index: a word under its term, a phrase under the
// pair of neighbours that the fewest other keywords have, tagged by what is compared
// (case, marks, stems) and whether stop words are passed over. Only tokens near
// edits are looked up, so that the work depends on the change and on what it touches, not
// on how many subscriptions there are.
//
// What the last changes of a page told whom is kept, see History; an Explainer says of a
// keyword why a change did not touch it.
package match
