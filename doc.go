// Package vokter watches documents on the web: it fetches pages, keeps versions of
// their texts, finds what was added or removed, and tells exactly those whose
// keywords the change touches.
//
// A [Router] chains the stages fetch, index, diff, match and delivery as Watermill
// handlers over a transport. Build one with [New] from a [Config], and call
// [Router.Run]. Without a data directory everything is kept in memory.
package vokter
