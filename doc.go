// Package vokter watches documents on the web. It fetches pages, keeps versions of their texts,
// finds what was added or removed, and notifies the subscriptions whose keywords are in a change.
//
// A [Router] chains the stages fetch, index, diff, match and delivery as Watermill handlers over a
// transport. Build one with [New] from a [Config], and call [Router.Run]. Without a data directory
// everything is kept in memory. Package pipeline has the words that a program needs beside it:
// Subscription, Notification, Sink, Source, Reader. Package inspect has what [Router.List] and
// [Router.Explain] return, package pipeline/flow what [Router.Handle] needs.
package vokter

import (
	"runtime/debug"
)

// version is set by the linker for a release.
var version string

// Version is the version of this module: that of the release, or of the module in the
// program that embeds it, or "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/vokter/vokter" && m.Version != "" && m.Version != "(devel)" {
				return m.Version
			}
		}
	}
	return "dev"
}
