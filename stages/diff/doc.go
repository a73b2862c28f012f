// Package diff finds what differs between two versions of a document: the stage that
// turns snapshots into changes, and its core, the function Diff, which needs neither
// transport nor clock.
//
// Diff first decides which blocks belong together, since keywords are counted within
// such groups, and then what was removed and added in each group:
//
//  1. Units (a block, or a short list item or table row) with equal folded tokens pair
//     off, where a shortest diff of the units keeps them in order. Equal ones that are
//     left over pair off from the top: those moved.
//  2. What is left on both sides is diffed as one sequence of folded tokens in which each
//     block ends with a border. Two units belong together when this diff keeps enough of
//     the smaller one in the larger.
//  3. A unit that then belongs to none may still join another such unit of the other side
//     by the tokens they have in common in any order.
//  4. Belonging together is transitive. Each group, and each pair whose exact tokens
//     differ, is diffed on its own, on exact tokens with borders.
//
// Several shortest diffs of one pair of sequences may exist. The one taken keeps the
// longest common prefix, then the longest common suffix, and between them what
// go-diff's bisection finds in the tokens that both sides have. It depends on nothing but
// the two texts.
//
// Work is bounded by counted cells, never by time, so that the same texts give the same
// result on any machine under any load; see limits. Memory is bounded by how many blocks and
// tokens are grouped: where more changed, steps 2 to 4 are left out, and all changed blocks
// are one coarse group.
package diff
